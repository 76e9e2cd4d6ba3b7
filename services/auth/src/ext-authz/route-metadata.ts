import { fromBinary, type JsonObject } from '@bufbuild/protobuf';
import type { RouteReference } from '@tollgate/policies/match/route';
import { MetadataSchema } from '@tollgate/proto/envoy/config/core/v3/base';

// The route that a gateway has matched, as Envoy Gateway sends it with `includeRouteMetadata`:
// filter_metadata["envoy-gateway"].resources[0] = { kind, namespace, name, sectionName }.

const metadataNamespace = 'envoy-gateway';
const resourcesField = 'resources';
/** `sectionName` is the name of the rule, and missing if it has none. */
const attributes = ['kind', 'namespace', 'name', 'sectionName'] as const;

/** More than the rules of most clusters; 10,000 take about 5 MB. */
const maxCached = 10_000;

/** Reads it once for each message, of which a gateway has one for each rule of a route. */
export class RouteMetadataCache {
  readonly #known = new Map<string, RouteReference | undefined>();

  /** @param message a Metadata message as text with one character for each byte */
  read(message: string): RouteReference | undefined {
    const known = this.#known.get(message);
    if (known !== undefined || this.#known.has(message)) return known;
    const route = decodeRouteMetadata(Buffer.from(message, 'latin1'));
    if (this.#known.size >= maxCached) this.#known.clear();
    this.#known.set(message, route);
    return route;
  }
}

/** Reads it from a Metadata message. Undefined without it, and if the message is malformed. */
export function decodeRouteMetadata(bytes: Uint8Array): RouteReference | undefined {
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
