import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import { MetadataSchema } from '@tollgate/proto/envoy/config/core/v3/base';
import { CheckRequestSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import fc from 'fast-check';
import t from 'tap';
import { readCheckRequest, writeAllowed } from '../../src/ext-authz/codec.ts';
import { decisionMetadata, decodeCheckRequest, encodeCheckResponse } from '../../src/ext-authz/grpc.ts';
import { identityHeaders } from '../../src/ext-authz/identity-headers.ts';
import type { AuthzAllowed } from '../../src/ext-authz/result.ts';
import { RouteMetadataCache } from '../../src/ext-authz/route-metadata.ts';

const text = fc.oneof(
  { weight: 50, arbitrary: fc.string({ maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 10 }) },
);
const name = fc.oneof(
  fc.constantFrom(
    'authorization',
    'Authorization',
    'x-auth-role',
    'X-Forwarded-For',
    'x-forwarded-for',
    ':path',
  ),
  { weight: 3, arbitrary: fc.string({ minLength: 1, maxLength: 20 }) },
  fc.string({ maxLength: 3 }),
);
const rawHeader = fc.oneof(
  fc.record({ key: name, value: text }),
  fc.record({ key: name, rawValue: fc.uint8Array({ maxLength: 40 }) }),
  fc.record({ key: name, value: text, rawValue: fc.uint8Array({ maxLength: 4 }) }),
);
const method = fc.constantFrom('GET', 'post', 'M-SEARCH');
const http = fc.record(
  {
    ...{ id: text, host: text, scheme: text, protocol: text, path: text, method },
    // `__proto__` is no name of a header field.
    headers: fc.dictionary(name, text, { maxKeys: 8 }),
    headerMap: fc.record({ headers: fc.array(rawHeader, { maxLength: 8 }) }),
  },
  { requiredKeys: ['method', 'path'] },
);
/** A Peer as the field `source`: with other fields, without an address, on a Unix socket. */
const source = fc.constantFrom(
  [],
  [0x0a, 2, 0x0a, 0],
  [0x0a, 4, 0x0a, 2, 0x0a, 0],
  [0x0a, 9, 0x0a, 7, 0x0a, 5, 0x12, 3, 0x3a, 0x3a, 0x31],
  [0x0a, 17, 0x12, 1, 0x61, 0x0a, 9, 0x0a, 7, 0x12, 3, 0x3a, 0x3a, 0x31, 0x18, 80, 0x22, 1, 0x61],
  [0x0a, 11, 0x0a, 9, 0x0a, 5, 0x12, 3, 0x3a, 0x3a, 0x31, 0x12, 0],
  [0x0a, 5, 0x0a, 3, 0x12, 1, 0x61],
);
/** Fields of AttributeContext and HttpRequest that our definitions do not have. */
const unknown = fc.constantFrom(
  [],
  [0x1a, 2, 0x0a, 0],
  [0x38, 1],
  [0x6d, 1, 2, 3, 4],
  [0x61, 1, 2, 3, 4, 5, 6, 7, 8],
);

/** A value of google.protobuf.Struct: text, or something else. */
const structValue = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('HTTPRoute', 'shop', 'orders', '') },
  fc.constantFrom(true, 1, null, 'é'),
);
const resource = fc.record(
  {
    ...{ kind: structValue, namespace: structValue, name: structValue },
    sectionName: structValue,
    other: structValue,
  },
  { requiredKeys: ['kind', 'name'], noNullPrototype: true },
);
const resources = fc.oneof(
  { weight: 6, arbitrary: fc.array(resource, { maxLength: 2 }) },
  fc.constantFrom('text', {}, [1], [[]]),
);
const namespaceMetadata = fc.record(
  { policies: fc.constant(['a']), resources },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonObject>;
const routeMetadata = fc
  .record({ other: namespaceMetadata, 'envoy-gateway': namespaceMetadata }, { requiredKeys: [] })
  .map((filterMetadata) => toBinary(MetadataSchema, create(MetadataSchema, { filterMetadata })));
/** As the last field of AttributeContext, mostly once. */
const context = fc
  .oneof(
    { weight: 8, arbitrary: fc.tuple(routeMetadata) },
    fc.constant([]),
    fc.tuple(routeMetadata, routeMetadata),
  )
  .map((all) => Buffer.concat(all.map((bytes) => field(0x6a, bytes))));

function encode(fields: object): Buffer {
  const check = create(CheckRequestSchema, { attributes: { request: { http: fields } } });
  return Buffer.from(toBinary(CheckRequestSchema, check));
}

/** Wraps a message as a field of another. */
function field(tag: number, ...content: readonly (Uint8Array | readonly number[])[]): Buffer {
  const bytes = Buffer.concat(content.map((part) => Uint8Array.from(part)));
  return Buffer.concat([Buffer.from([tag, (bytes.length & 0x7f) | 0x80, bytes.length >>> 7]), bytes]);
}

const parts = fc.tuple(http, source, unknown, unknown, context);
const request = parts.map(([fields, peer, before, after, metadata]) => {
  const inner = encode(fields);
  // The message of HttpRequest is what remains after three tags with their lengths.
  const start = inner.length - httpLength(inner);
  return field(
    0x0a,
    before,
    peer,
    field(0x22, after, field(0x12, before, inner.subarray(start), after)),
    before,
    metadata,
  );
});

function httpLength(bytes: Buffer): number {
  let at = 0;
  let length = 0;
  for (let depth = 0; depth < 3; depth++) {
    at += 1;
    length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
  }
  return length;
}

/** Headers whose values are read. */
const headers = new Set(['x-auth-role', 'authorization', 'x-forwarded-for']);
const wanted = { headers, route: new RouteMetadataCache() };

/**
 * Requests that both read must be equal; what is unusual is left to the other.
 *
 * @returns whether both have read it.
 */
function compare(bytes: Uint8Array): boolean {
  const usual = readCheckRequest(bytes, wanted);
  if (usual === undefined) return false;
  const expected = decodeCheckRequest(bytes, wanted);
  const show = (value: typeof usual | undefined) =>
    JSON.stringify(
      value && {
        ...value,
        headers: Object.entries(value.headers).sort(),
        headerNames: [...new Set(value.headerNames)].sort(),
      },
    );
  if (show(usual) !== show(expected)) throw new Error(`${show(usual)} instead of ${show(expected)}`);
  return true;
}

t.test('checks are read as by the definition of their message', async (t) => {
  let both = 0;
  let routes = 0;
  const property = fc.property(request, (bytes) => {
    if (compare(bytes)) both++;
    if (readCheckRequest(bytes, wanted)?.route !== undefined) routes++;
  });
  fc.assert(property, { numRuns: 3_000 });
  t.ok(both > 500, `${both} of 3,000 are usual`);
  t.ok(routes > 50, `${routes} of 3,000 have a route`);
  const usual = encode({
    ...{ id: '1', method: 'get', path: '/cart', host: 'app.test', scheme: 'https', protocol: 'HTTP/2' },
    headers: {
      ':path': '/cart',
      authorization: 'Bearer a',
      'x-auth-role': 'admin',
      'x-forwarded-for': '::2',
    },
  });
  t.strictSame(readCheckRequest(usual), {
    method: 'get',
    path: '/cart',
    host: 'app.test',
    headers: {},
    sourceAddress: 'none',
    authorization: ['Bearer a'],
    forwardedFor: ['::2'],
    headerNames: [':path', 'authorization', 'x-auth-role', 'x-forwarded-for'],
  });
});

t.test('the route that the gateway has matched is read when it matters', async (t) => {
  const resource = { kind: 'HTTPRoute', namespace: 'shop', name: 'orders', sectionName: 'export' };
  const filterMetadata = { 'envoy-gateway': { resources: [resource], policies: ['a'] } };
  const attributes = {
    request: { http: { method: 'GET', path: '/' } },
    routeMetadataContext: toBinary(MetadataSchema, create(MetadataSchema, { filterMetadata })),
  };
  const bytes = toBinary(CheckRequestSchema, create(CheckRequestSchema, { attributes }));
  t.strictSame(readCheckRequest(bytes, wanted)?.route, resource);
  t.strictSame(decodeCheckRequest(bytes, wanted)?.route, resource);
  t.notOk('route' in (readCheckRequest(bytes) ?? {}));
});

t.test('damaged checks are read as by the definition, or left to it', async (t) => {
  const damage = fc.array(fc.record({ at: fc.nat(200), byte: fc.nat(255) }), { minLength: 1, maxLength: 3 });
  const damaged = fc.tuple(request, damage, fc.nat(300)).map(([bytes, changes, length]) => {
    const copy = Uint8Array.from(bytes);
    for (const { at, byte } of changes) if (at < copy.length) copy[at] = byte;
    return length < 100 ? copy.subarray(0, length) : copy;
  });
  fc.assert(
    fc.property(damaged, (bytes) => void compare(bytes)),
    { numRuns: 6_000 },
  );
  fc.assert(
    fc.property(fc.tuple(request, request), ([a, b]) => void compare(Buffer.concat([a, b]))),
    { numRuns: 300 },
  );
  t.pass('6,300 inputs');
});

t.test('a known field with another wire type is left to the definition', async (t) => {
  const contextExtensions = [80, 1];
  const http = [18, 7, 56, 1, 18, 3, 71, 69, 84];
  const request = [34, http.length, ...http];
  const bytes = Uint8Array.from([10, request.length + 2, ...contextExtensions, ...request]);
  t.equal(readCheckRequest(bytes), undefined);
  // The address of the source.
  const socketAddress = [0x15, 3, 0x3a, 0x3a, 0x31];
  const source = [10, 9, 10, 7, 10, 5, ...socketAddress];
  const get = [34, 7, 18, 5, 18, 3, 71, 69, 84];
  t.equal(readCheckRequest(Uint8Array.from([10, source.length + get.length, ...source, ...get])), undefined);
  const routeMetadata = [0x6d, 1, 2, 3, 4];
  const attributes = [...get, ...routeMetadata];
  t.equal(readCheckRequest(Uint8Array.from([10, attributes.length, ...attributes])), undefined);
  const late = [...get, 0x6a, 0, ...source];
  t.equal(readCheckRequest(Uint8Array.from([10, late.length, ...late]), wanted), undefined, 'a late source');
});

t.test('allowed requests have the response of the definition, byte for byte', async (t) => {
  const identity: fc.Arbitrary<CallerIdentity> = fc.record(
    {
      userId: text,
      sessionId: text,
      role: text,
      plan: text,
      aal: fc.constantFrom('aal1', 'aal2', 'aal3'),
      isAnonymous: fc.boolean(),
      kind: fc.constantFrom('user', 'client'),
      clientId: text,
      scope: text,
      issuer: text,
      claims: fc.dictionary(fc.stringMatching(/^[a-z]{1,9}$/), text, { maxKeys: 2 }),
      limit: fc.record({ requestsPerUnit: fc.nat(), unit: fc.constantFrom('MINUTE', 'HOUR') }),
    },
    { requiredKeys: ['role', 'plan', 'aal', 'isAnonymous', 'issuer', 'claims'] },
  ) as fc.Arbitrary<CallerIdentity>;
  let usual = 0;
  const limited = fc.option(fc.dictionary(name, text, { maxKeys: 3 }), { nil: undefined });
  const caller = fc.option(identity, { nil: undefined });
  const property = fc.property(caller, fc.array(name), limited, (caller, names, responseHeaders) => {
    const headers = identityHeaders(caller, names);
    const decision: AuthzAllowed = {
      ...{ allowed: true, identity: caller, headers },
      ...(responseHeaders && { rateLimit: 'ok', responseHeaders }),
    };
    const written = writeAllowed(headers, decisionMetadata(decision), responseHeaders);
    if (written === undefined) return true;
    usual++;
    return Buffer.from(encodeCheckResponse(decision)).equals(written);
  });
  fc.assert(property, { numRuns: 2_000 });
  t.ok(usual > 1_000, `${usual} of 2,000 are usual`);
  const long = { set: { 'x-auth-role': 'r'.repeat(3_000) }, remove: [] };
  t.equal(writeAllowed(long, {}), undefined, 'a response that does not fit');
});
