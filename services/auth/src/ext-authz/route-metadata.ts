import { fromBinary, type JsonObject } from '@bufbuild/protobuf';
import { MessageReader } from '@tollgate/kit/grpc/message-reader';
import type { RouteReference } from '@tollgate/policies/match/route-index';
import { MetadataSchema } from '@tollgate/proto/envoy/config/core/v3/base';

// The route that a gateway has matched, as Envoy Gateway sends it with `includeRouteMetadata`:
// filter_metadata["envoy-gateway"].resources[0] = { kind, namespace, name, sectionName }.

const metadataNamespace = 'envoy-gateway';
const resourcesField = 'resources';
/** `sectionName` is the name of the rule, and missing if it has none. */
const attributes = ['kind', 'namespace', 'name', 'sectionName'] as const;

/** Reads it from a Metadata message. Undefined without it, and if the message is malformed. */
export function decodeRouteMetadata(bytes: Uint8Array): RouteReference | undefined {
  const reader = new MessageReader(bytes);
  const route = readRouteMetadata(reader, reader.end);
  if (!reader.failed) return route;
  const { [resourcesField]: resources } = decodeMetadata(bytes)[metadataNamespace] ?? {};
  const first = Array.isArray(resources) ? resources[0] : undefined;
  if (first === null || typeof first !== 'object' || Array.isArray(first)) return undefined;
  const values = attributes.map((name) => first[name]);
  return createReference(values.map((value) => (typeof value === 'string' ? value : '')));
}

function decodeMetadata(bytes: Uint8Array): Readonly<Record<string, JsonObject>> {
  try {
    return fromBinary(MetadataSchema, bytes).filterMetadata;
  } catch {
    return {};
  }
}

function createReference([kind = '', namespace = '', name = '', sectionName = '']: readonly string[]):
  | RouteReference
  | undefined {
  return kind === '' || name === '' ? undefined : { kind, namespace, name, sectionName };
}

/** Tags of Metadata, and of google.protobuf.Struct, Value and ListValue. */
const tags = {
  entry: 0x0a,
  key: 0x0a,
  value: 0x12,
  text: 0x1a,
  struct: 0x2a,
  list: 0x32,
  item: 0x0a,
} as const;

/** Reads it from the bytes of a Metadata message; anything unusual makes the reader fail. */
export function readRouteMetadata(reader: MessageReader, end: number): RouteReference | undefined {
  const values = new Map<string, string>();
  readMap(reader, end, (namespace, structEnd) => {
    if (namespace !== metadataNamespace) return;
    readMap(reader, structEnd, (name, valueEnd) => {
      if (name === resourcesField) readFirst(reader, valueEnd, values);
    });
  });
  return createReference(attributes.map((name) => values.get(name) ?? ''));
}

/** Reads the texts of the first item of a list. */
function readFirst(reader: MessageReader, end: number, values: Map<string, string>): void {
  const list = readMember(reader, end, tags.list);
  if (!reader.hasField(list)) return;
  const item = readMember(reader, list, tags.item);
  readMap(reader, readMember(reader, item, tags.struct), (name, valueEnd) => {
    if (!reader.hasField(valueEnd)) return;
    const tag = reader.readTag();
    if (tag === tags.text) values.set(name, reader.readText(valueEnd));
    else reader.skipField(tag, valueEnd);
    expectEnd(reader, valueEnd);
  });
  expectEnd(reader, item);
  while (reader.hasField(list)) reader.skipField(reader.readTag(), list);
  expectEnd(reader, end);
}

/** Another value would replace the one before. */
function expectEnd(reader: MessageReader, end: number): void {
  if (reader.hasField(end)) reader.failed = true;
}

/** The end of a field that a message begins with. */
function readMember(reader: MessageReader, end: number, expected: number): number {
  if (!reader.hasField(end) || reader.readTag() !== expected) reader.failed = true;
  return reader.readEnd(end);
}

/** Calls `onEntry` at the value of each entry of a map; it need not read it. Keys are unique. */
function readMap(reader: MessageReader, end: number, onEntry: (key: string, valueEnd: number) => void): void {
  const keys = new Set<string>();
  while (reader.hasField(end)) {
    const entry = readMember(reader, end, tags.entry);
    if (reader.readTag() !== tags.key) reader.failed = true;
    const key = reader.readText(entry);
    if (keys.has(key)) reader.failed = true;
    keys.add(key);
    const value = readMember(reader, entry, tags.value);
    onEntry(key, value);
    while (reader.hasField(value)) reader.skipField(reader.readTag(), value);
    expectEnd(reader, entry);
  }
}
