import { fromBinary, fromJson, toBinary } from '@bufbuild/protobuf';
import { RateLimitDescriptorSchema } from '@tollgate/proto/envoy/extensions/common/ratelimit/v3/ratelimit';
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
  RateLimitService,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
} from '@tollgate/proto/grpc/health/v1/health';
import t from 'tap';
import { loadEnvoyMethod } from './envoy-service.ts';
import { isOnTheWire, plain, sameOnTheWire, type Twins } from './same-on-the-wire.ts';

const envoy = loadEnvoyMethod(
  'envoy/service/ratelimit/v3/rls.proto',
  'envoy.service.ratelimit.v3.RateLimitService',
  'ShouldRateLimit',
);

const entries = [
  { key: 'generic_key', value: 'per-user' },
  { key: 'remote_address', value: '2001:db8::1' },
];

const fullRequest: Twins = {
  ours: {
    domain: 'demo',
    descriptors: [
      { entries, limit: { requestsPerUnit: 4_294_967_295, unit: 'HOUR' } },
      { entries: [{ key: 'ключ', value: '' }] },
    ],
    hitsAddend: 7,
  },
  envoys: {
    domain: 'demo',
    descriptors: [
      { entries, limit: { requestsPerUnit: 4_294_967_295, unit: 3 } },
      { entries: [{ key: 'ключ' }] },
    ],
    hitsAddend: 7,
  },
};

const fullResponse: Twins = {
  ours: {
    overallCode: 'OVER_LIMIT',
    statuses: [
      {
        code: 'OVER_LIMIT',
        currentLimit: { requestsPerUnit: 20, unit: 'MINUTE', name: 'per-user' },
        limitRemaining: 0,
        durationUntilReset: '59.000000500s',
        quota: { requests: 5, validUntil: '2033-05-18T03:33:20Z', id: 'q1' },
      },
      { code: 'OK', currentLimit: { requestsPerUnit: 1, unit: 'YEAR' }, limitRemaining: 4_294_967_295 },
    ],
    responseHeadersToAdd: [{ key: 'ratelimit-limit', value: '20' }],
    requestHeadersToAdd: [{ key: 'x-raw', rawValue: '/wA=' }],
    rawBody: 'AAEC',
    dynamicMetadata: {
      text: 'a',
      number: 1.5,
      yes: true,
      nothing: null,
      list: [1, 'b'],
      struct: { deep: 'c' },
    },
    quota: { requests: 9, id: 'all' },
  },
  envoys: {
    overallCode: 2,
    statuses: [
      {
        code: 2,
        currentLimit: { requestsPerUnit: 20, unit: 2, name: 'per-user' },
        durationUntilReset: { seconds: 59, nanos: 500 },
        quota: { requests: 5, validUntil: { seconds: 2_000_000_000 }, id: 'q1' },
      },
      { code: 1, currentLimit: { requestsPerUnit: 1, unit: 6 }, limitRemaining: 4_294_967_295 },
    ],
    responseHeadersToAdd: [{ key: 'ratelimit-limit', value: '20' }],
    requestHeadersToAdd: [{ key: 'x-raw', rawValue: Buffer.from([0xff, 0]) }],
    rawBody: Buffer.from([0, 1, 2]),
    dynamicMetadata: {
      fields: {
        text: { stringValue: 'a' },
        number: { numberValue: 1.5 },
        yes: { boolValue: true },
        nothing: { nullValue: 0 },
        list: { listValue: { values: [{ numberValue: 1 }, { stringValue: 'b' }] } },
        struct: { structValue: { fields: { deep: { stringValue: 'c' } } } },
      },
    },
    quota: { requests: 9, id: 'all' },
  },
};

t.test('a request with every field that Envoy knows has the same bytes in our definition', async (t) => {
  sameOnTheWire(t, RateLimitRequestSchema, fullRequest, envoy.requestSerialize, envoy.requestDeserialize);
});

t.test('a response with every field that Envoy knows has the same bytes in our definition', async (t) => {
  sameOnTheWire(t, RateLimitResponseSchema, fullResponse, envoy.responseSerialize, envoy.responseDeserialize);
});

t.test('empty messages are no bytes at all', async (t) => {
  t.equal(toBinary(RateLimitRequestSchema, fromJson(RateLimitRequestSchema, {})).length, 0);
  t.equal(envoy.requestSerialize({}).length, 0);
});

t.test('the method has the path that Envoy calls', async (t) => {
  const method = RateLimitService.method.shouldRateLimit;
  t.equal(`/${RateLimitService.typeName}/${method.name}`, envoy.path);
  t.equal(method.methodKind, 'unary');
});

t.test(
  'hits of a single descriptor and hits given back, which the older tree lacks, are fields 3 and 4',
  async (t) => {
    // Field 3, length 2: { field 1, varint 5 }; field 4, varint 1.
    isOnTheWire(t, RateLimitDescriptorSchema, { hitsAddend: '5', isNegativeHits: true }, '1a02080520 01');
    // A zero that is there differs from none: it looks without counting.
    isOnTheWire(t, RateLimitDescriptorSchema, { hitsAddend: '0' }, '1a00');
    const absent = fromBinary(RateLimitDescriptorSchema, new Uint8Array());
    t.equal(absent.hitsAddend, undefined);
  },
);

t.test('a limit per week, which the older tree lacks, is unit 7', async (t) => {
  // statuses (2), current_limit (2), unit (2).
  isOnTheWire(
    t,
    RateLimitResponseSchema,
    { statuses: [{ currentLimit: { unit: 'WEEK' } }] },
    '1204 1202 1007',
  );
});

t.test('an older Envoy skips what it does not know', async (t) => {
  const ours = fromJson(RateLimitRequestSchema, {
    domain: 'demo',
    descriptors: [{ entries, hitsAddend: '5', isNegativeHits: true }],
  });
  t.same(plain(envoy.requestDeserialize(Buffer.from(toBinary(RateLimitRequestSchema, ours)))), {
    domain: 'demo',
    descriptors: [{ entries }],
  });
});

t.test('an enum value of the future is kept as its number', async (t) => {
  const bytes = envoy.requestSerialize({
    descriptors: [{ entries, limit: { requestsPerUnit: 1, unit: 9 } }],
  });
  const request = fromBinary(RateLimitRequestSchema, bytes);
  t.equal(request.descriptors[0]?.limit?.unit, 9);
  t.same(Buffer.from(toBinary(RateLimitRequestSchema, request)), bytes);
});

t.test('the health protocol has the paths, fields and numbers of grpc.health.v1', async (t) => {
  t.equal(`/${Health.typeName}/${Health.method.check.name}`, '/grpc.health.v1.Health/Check');
  t.equal(`/${Health.typeName}/${Health.method.watch.name}`, '/grpc.health.v1.Health/Watch');
  t.equal(Health.method.watch.methodKind, 'server_streaming');
  isOnTheWire(
    t,
    HealthCheckRequestSchema,
    { service: 'ratelimit' },
    `0a09 ${Buffer.from('ratelimit').toString('hex')}`,
  );
  isOnTheWire(t, HealthCheckResponseSchema, {}, '');
  isOnTheWire(t, HealthCheckResponseSchema, { status: 'SERVING' }, '0801');
  isOnTheWire(t, HealthCheckResponseSchema, { status: 'NOT_SERVING' }, '0802');
  isOnTheWire(t, HealthCheckResponseSchema, { status: 'SERVICE_UNKNOWN' }, '0803');
});
