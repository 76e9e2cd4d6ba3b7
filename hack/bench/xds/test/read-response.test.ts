import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { DiscoveryResponseSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import t from 'tap';
import { readResponseHead, userLimitsIn } from '../followers/read-response.ts';

const config = (domain: string, requestsPerUnit: number) =>
  anyPack(
    RateLimitConfigSchema,
    create(RateLimitConfigSchema, {
      name: domain,
      domain,
      descriptors: [{ key: 'route' }, { key: 'user', rateLimit: { requestsPerUnit } }],
    }),
  );

const response = toBinary(
  DiscoveryResponseSchema,
  create(DiscoveryResponseSchema, {
    versionInfo: 'abc',
    nonce: '7',
    typeUrl: 'a type',
    resources: [config('shop', 5), config('bank', 9)],
  }),
);

t.test('the head of a response is read without its resources', async (t) => {
  t.strictSame(readResponseHead(response), { version: 'abc', nonce: '7' });
});

t.test('the limits of users are found by domain', async (t) => {
  t.strictSame(userLimitsIn(response), { shop: 5, bank: 9 });
});
