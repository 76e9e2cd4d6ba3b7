import { MessageReader } from '@tollgate/kit/grpc/message-reader';
import type { RouteReference } from '@tollgate/policies/match/route';
import type { AuthzRequest } from './request.ts';
import type { HeaderChanges } from './result.ts';
import type { RouteMetadataCache } from './route-metadata.ts';

// The messages of usual checks are read and written here, without reflection, which costs more than
// a decision. Everything unusual is left to protobuf-es.

/** A field number × 8 + the wire type. */
const tags = {
  check: { attributes: 0x0a },
  attributes: { source: 0x0a, request: 0x22, contextExtensions: 0x52, routeMetadata: 0x6a },
  /** Peer, Address and SocketAddress. */
  source: { address: 0x0a, socketAddress: 0x0a, ip: 0x12 },
  request: { http: 0x12 },
  http: {
    id: 0x0a,
    method: 0x12,
    headers: 0x1a,
    path: 0x22,
    host: 0x2a,
    scheme: 0x32,
    protocol: 0x52,
    headerMap: 0x6a,
  },
  headerMap: { headers: 0x0a },
  header: { key: 0x0a, value: 0x12, rawValue: 0x1a },
} as const;

/** Numbers of the fields that the definition of HttpRequest has. */
const httpFields = new Set(Object.values(tags.http).map((tag) => tag >>> 3));

/** Names of headers, in lower case, whose values are read. */
export type WantedHeaders = ReadonlySet<string>;

export const noHeaders: WantedHeaders = new Set();

/** Usually no header is wanted: a look-up for each header of a check would cost a few percent. */
function isWanted(wanted: WantedHeaders, name: string): boolean {
  return wanted.size > 0 && wanted.has(name);
}

/** Parts of a check that are read when policies need them. */
export interface WantedParts {
  readonly headers: WantedHeaders;
  /** Reads the route that the gateway has matched; undefined if it does not matter. */
  readonly route: RouteMetadataCache | undefined;
}

export const noParts: WantedParts = { headers: noHeaders, route: undefined };

/** Reads a CheckRequest. Undefined when it has anything unusual. */
export function readCheckRequest(
  bytes: Uint8Array,
  { headers: wanted, route: routes }: WantedParts = noParts,
): AuthzRequest | undefined {
  const reader = new MessageReader(bytes);
  const attributes = readOnly(reader, reader.end, tags.check.attributes);
  const { sourceAddress, request } = readAttributes(reader, attributes);
  const http = readOnly(reader, request, tags.request.http);
  const result = reader.failed ? undefined : readHttpRequest(reader, http, { sourceAddress, wanted });
  // Fields that follow in the outer messages must not add to it.
  skipRest(reader, request, tags.request.http);
  const route = routes && readRoute(reader, attributes, routes);
  skipRest(reader, attributes, tags.attributes.request);
  skipRest(reader, reader.end, tags.check.attributes);
  if (reader.failed) return undefined;
  return result && route ? { ...result, route } : result;
}

/** Goes to the metadata of the route, which Envoy sends last. */
function readRoute(
  reader: MessageReader,
  end: number,
  routes: RouteMetadataCache,
): RouteReference | undefined {
  while (reader.hasField(end)) {
    const tag = reader.readTag();
    if (tag === tags.attributes.routeMetadata) {
      const route = routes.read(reader.readLatin1(end));
      // A second one would be merged with the first.
      skipRest(reader, end, tags.attributes.routeMetadata);
      return route;
    }
    skipUnknown(reader, tag, end, tags.attributes.request);
  }
  return undefined;
}

/** Goes to the field with a tag; returns the end of the field. */
function readOnly(reader: MessageReader, end: number, wanted: number): number {
  while (reader.hasField(end)) {
    const tag = reader.readTag();
    if (tag === wanted) return reader.readEnd(end);
    skipUnknown(reader, tag, end, wanted);
  }
  reader.failed = true;
  return 0;
}

/** Goes to the request; reads the source, which Envoy sends before it. */
function readAttributes(reader: MessageReader, end: number): { sourceAddress: string; request: number } {
  let sourceAddress: string | undefined;
  while (reader.hasField(end)) {
    const tag = reader.readTag();
    if (tag === tags.attributes.request)
      return { sourceAddress: sourceAddress ?? noSource, request: reader.readEnd(end) };
    if (tag === tags.attributes.source && sourceAddress === undefined)
      sourceAddress = readSourceAddress(reader, reader.readEnd(end));
    else skipUnknown(reader, tag, end, tags.attributes.request);
  }
  reader.failed = true;
  return { sourceAddress: noSource, request: 0 };
}

/** The address of a Peer. That of a Unix socket is unusual. */
function readSourceAddress(reader: MessageReader, peer: number): string {
  const address = readOnly(reader, peer, tags.source.address);
  const socketAddress = readOnly(reader, address, tags.source.socketAddress);
  let ip = '';
  while (reader.hasField(socketAddress)) {
    const tag = reader.readTag();
    if (tag === tags.source.ip) ip = reader.readText(socketAddress);
    else skipUnknown(reader, tag, socketAddress, tags.source.ip);
  }
  // Another kind of address would replace it.
  if (reader.hasField(address)) reader.failed = true;
  skipRest(reader, peer, tags.source.address);
  return ip === '' ? noSource : ip;
}

function skipRest(reader: MessageReader, end: number, wanted: number): void {
  while (reader.hasField(end)) skipUnknown(reader, reader.readTag(), end, wanted);
}

function skipUnknown(reader: MessageReader, tag: number, end: number, wanted: number): void {
  // A second one would be merged with the first. Fields are compared without their wire type, which
  // a damaged message may have changed.
  const field = tag >>> 3;
  if (field === wanted >>> 3 || field === tags.attributes.contextExtensions >>> 3) reader.failed = true;
  const { request, routeMetadata, source } = tags.attributes;
  if ((wanted === request || wanted === routeMetadata) && field === source >>> 3) reader.failed = true;
  if (field === routeMetadata >>> 3 && tag !== routeMetadata) reader.failed = true;
  reader.skipField(tag, end);
}

interface HttpOptions {
  readonly sourceAddress: string;
  readonly wanted: WantedHeaders;
}

function readHttpRequest(
  reader: MessageReader,
  end: number,
  { sourceAddress, wanted }: HttpOptions,
): AuthzRequest {
  let method = '';
  let path = '';
  let host = '';
  const joined = createHeaders();
  let raw: Headers | undefined;
  while (reader.hasField(end)) {
    const tag = reader.readTag();
    switch (tag) {
      case tags.http.method:
        method = reader.readText(end);
        break;
      case tags.http.path:
        path = reader.readText(end);
        break;
      case tags.http.headers:
        readJoinedHeader(reader, end, { headers: joined, wanted });
        break;
      case tags.http.headerMap:
        if (raw !== undefined) reader.failed = true;
        raw = readHeaderMap(reader, end, wanted);
        break;
      case tags.http.host:
        host = reader.readText(end);
        break;
      case tags.http.id:
      case tags.http.scheme:
      case tags.http.protocol:
        reader.skipText(end);
        break;
      default:
        if (httpFields.has(tag >>> 3)) reader.failed = true;
        reader.skipField(tag, end);
    }
  }
  return { method, path, host, sourceAddress, ...(raw ?? joined) };
}

interface Headers {
  readonly authorization: string[];
  readonly forwardedFor: string[];
  readonly headerNames: string[];
  /** Values of wanted headers. */
  readonly headers: Record<string, string>;
}

const createHeaders = (): Headers => ({ authorization: [], forwardedFor: [], headerNames: [], headers: {} });

interface HeaderOptions {
  readonly headers: Headers;
  readonly wanted: WantedHeaders;
}

/** The list of values of a header that is read. */
function valuesOf(headers: Headers, name: string): string[] | undefined {
  if (name === 'authorization') return headers.authorization;
  return name === 'x-forwarded-for' ? headers.forwardedFor : undefined;
}

/** An entry of a map: of equal keys, the last one counts. */
function readJoinedHeader(reader: MessageReader, limit: number, { headers, wanted }: HeaderOptions): void {
  let key = '';
  let value = '';
  const end = reader.readEnd(limit);
  while (reader.hasField(end)) {
    const tag = reader.readTag();
    if (tag === tags.header.key) key = reader.readText(end);
    else if (tag !== tags.header.value) reader.failed = true;
    else if (valuesOf(headers, key) !== undefined || isWanted(wanted, key)) value = reader.readText(end);
    // The key comes first; a value that came before it would be lost.
    else if (key === '') reader.failed = true;
    else reader.skipText(end);
  }
  headers.headerNames.push(key);
  valuesOf(headers, key)?.splice(0, 1, value);
  if (isWanted(wanted, key)) headers.headers[key] = value;
}

/** With `encode_raw_headers`: all headers as they were received. */
function readHeaderMap(reader: MessageReader, limit: number, wanted: WantedHeaders): Headers {
  const headers = createHeaders();
  const end = reader.readEnd(limit);
  while (reader.hasField(end)) {
    if (reader.readTag() === tags.headerMap.headers) readRawHeader(reader, end, { headers, wanted });
    else reader.failed = true;
  }
  return headers;
}

function readRawHeader(reader: MessageReader, limit: number, { headers, wanted }: HeaderOptions): void {
  let name = '';
  let value = '';
  let raw = '';
  const end = reader.readEnd(limit);
  while (reader.hasField(end)) {
    const tag = reader.readTag();
    const isWanted = valuesOf(headers, name) !== undefined || wanted.has(name);
    if (tag === tags.header.key) name = reader.readText(end).toLowerCase();
    else if (name === '') reader.failed = true;
    else if (tag === tags.header.value && isWanted) value = reader.readText(end);
    else if (tag === tags.header.value) reader.skipText(end);
    else if (tag === tags.header.rawValue && isWanted) raw = reader.readLatin1(end);
    else if (tag === tags.header.rawValue) reader.skipField(tag, end);
    else reader.failed = true;
  }
  headers.headerNames.push(name);
  // Latin-1, as in HTTP/1, so that no bytes outside ASCII turn into other text.
  const text = raw === '' ? value : raw;
  valuesOf(headers, name)?.push(text);
  if (wanted.has(name)) addHeader(headers.headers, name, text);
}

/** Joins repeated headers, as Envoy does before it compares them, and cookies as browsers do. */
export function addHeader(headers: Record<string, string>, name: string, value: string): void {
  const before = Object.hasOwn(headers, name) ? headers[name] : undefined;
  headers[name] = before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ','}${value}`;
}

/** The source of a check without an IP address, such as that of a Unix socket. */
export const noSource = 'none';

/** Values of dynamic metadata: google.protobuf.Struct without lists. */
export interface Metadata {
  readonly [name: string]: string | number | boolean | Metadata;
}

/**
 * Writes the CheckResponse of an allowed request: status OK, headers that replace those of their
 * names, headers to remove, headers of the response, dynamic metadata. Undefined when it has
 * anything unusual.
 */
export function writeAllowed(
  headers: HeaderChanges,
  metadata: Metadata,
  responseHeaders: Readonly<Record<string, string>> = {},
): Uint8Array | undefined {
  const writer = new MessageWriter();
  // The writer writes from the end to the beginning.
  const metadataEnd = writer.position;
  writeStruct(writer, metadata);
  writer.writeHeader(0x22, metadataEnd);
  const responseEnd = writer.position;
  writeHeaderOptions(writer, 0x32, responseHeaders);
  for (const name of headers.remove.toReversed()) writer.writeText(0x2a, name);
  writeHeaderOptions(writer, 0x12, headers.set);
  writer.writeHeader(0x1a, responseEnd);
  // The code OK is 0, which is not written.
  writer.writeHeader(0x0a, writer.position);
  return writer.finish();
}

/** @see envoy.config.core.v3.HeaderValueOption.HeaderAppendAction */
const overwriteIfExistsOrAdd = 2;

function writeHeaderOptions(
  writer: MessageWriter,
  tag: number,
  headers: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(headers).reverse()) {
    const optionEnd = writer.position;
    writer.writeByte(overwriteIfExistsOrAdd);
    writer.writeByte(0x18);
    const headerEnd = writer.position;
    if (value !== '') writer.writeText(0x12, value);
    if (name !== '') writer.writeText(0x0a, name);
    writer.writeHeader(0x0a, headerEnd);
    writer.writeHeader(tag, optionEnd);
  }
}

function writeStruct(writer: MessageWriter, struct: Metadata): void {
  for (const [name, value] of Object.entries(struct).reverse()) {
    const entryEnd = writer.position;
    if (typeof value === 'string') writer.writeText(0x1a, value);
    else if (typeof value === 'number') writer.writeDouble(0x11, value);
    else if (typeof value === 'boolean') {
      writer.writeByte(value ? 1 : 0);
      writer.writeByte(0x20);
    } else {
      writeStruct(writer, value);
      writer.writeHeader(0x2a, entryEnd);
    }
    writer.writeHeader(0x12, entryEnd);
    writer.writeText(0x0a, name);
    writer.writeHeader(0x0a, entryEnd);
  }
}

/** Enough for usual responses, which have about 600 bytes. */
const writerBytes = 2_048;

/** Writes from the end to the beginning, so that the length of a field is known at its header. */
export class MessageWriter {
  readonly #bytes = Buffer.allocUnsafe(writerBytes);
  #failed = false;
  position: number = writerBytes;

  writeByte(byte: number): void {
    this.position -= 1;
    if (this.position >= 0) this.#bytes[this.position] = byte;
    else this.#failed = true;
  }

  /** ASCII only. */
  writeText(tag: number, text: string): void {
    const end = this.position;
    const start = end - text.length;
    for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) >= 0x80) this.#failed = true;
    if (start < 0 || this.#failed) {
      this.#failed = true;
      return;
    }
    this.#bytes.write(text, start, 'latin1');
    this.position = start;
    this.writeHeader(tag, end);
  }

  writeDouble(tag: number, value: number): void {
    this.position -= 8;
    if (this.position >= 0) this.#bytes.writeDoubleLE(value, this.position);
    else this.#failed = true;
    this.writeByte(tag);
  }

  /** The tag and the length of what was written since `end`. */
  writeHeader(tag: number, end: number): void {
    const length = end - this.position;
    if (length >= 0x80) {
      this.writeByte(length >>> 7);
      this.writeByte((length & 0x7f) | 0x80);
    } else this.writeByte(length);
    this.writeByte(tag);
  }

  /** Undefined when something did not fit. Larger lengths than 2^14 do not. */
  finish(): Uint8Array | undefined {
    return this.#failed ? undefined : this.#bytes.subarray(this.position);
  }
}
