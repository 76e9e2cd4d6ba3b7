import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  AggregatedDiscoveryService,
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import {
  RateLimitConfigSchema,
  RateLimitDescriptorSchema,
  RateLimitPolicySchema,
} from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import t from 'tap';
import { loadEnvoyMethod } from './envoy-service.ts';
import { isOnTheWire, sameOnTheWire } from './same-on-the-wire.ts';

const file = 'envoy/service/discovery/v3/ads.proto';
const service = 'envoy.service.discovery.v3.AggregatedDiscoveryService';
const sotw = loadEnvoyMethod(file, service, 'StreamAggregatedResources');
const delta = loadEnvoyMethod(file, service, 'DeltaAggregatedResources');

const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
const node = {
  ours: { id: 'pod-1', cluster: 'edge', metadata: { zone: 'a' }, userAgentName: 'limiter' },
  envoys: {
    id: 'pod-1',
    cluster: 'edge',
    metadata: { fields: { zone: { stringValue: 'a' } } },
    userAgentName: 'limiter',
  },
};
const errorDetail = { code: 3, message: 'no unit' };

t.test('a discovery request has the same bytes in our definition', async (t) => {
  const rest = { versionInfo: 'v1', resourceNames: ['a', 'b'], typeUrl, responseNonce: 'n1', errorDetail };
  const twins = { ours: { node: node.ours, ...rest }, envoys: { node: node.envoys, ...rest } };
  sameOnTheWire(t, DiscoveryRequestSchema, twins, sotw.requestSerialize, sotw.requestDeserialize);
});

t.test('a delta discovery request has the same bytes in our definition', async (t) => {
  const rest = {
    typeUrl,
    resourceNamesSubscribe: ['a'],
    resourceNamesUnsubscribe: ['b'],
    initialResourceVersions: { c: '1' },
    responseNonce: 'n1',
    errorDetail,
  };
  const twins = { ours: { node: node.ours, ...rest }, envoys: { node: node.envoys, ...rest } };
  sameOnTheWire(t, DeltaDiscoveryRequestSchema, twins, delta.requestSerialize, delta.requestDeserialize);
});

/** Through bytes alone: what is inside an Any is nothing to either definition. */
t.test('discovery responses are read by Envoy as we write them, and the other way round', async (t) => {
  const value = toBinary(RateLimitConfigSchema, create(RateLimitConfigSchema, { name: 'a', domain: 'a' }));
  const any = { $typeName: 'google.protobuf.Any' as const, typeUrl, value };
  const ours = create(DiscoveryResponseSchema, { versionInfo: 'v1', resources: [any], typeUrl, nonce: 'n1' });
  const envoys = sotw.responseSerialize({
    versionInfo: 'v1',
    resources: [{ type_url: typeUrl, value }],
    typeUrl,
    nonce: 'n1',
  });
  t.equal(Buffer.from(toBinary(DiscoveryResponseSchema, ours)).toString('hex'), envoys.toString('hex'));
  t.same(fromBinary(DiscoveryResponseSchema, envoys), ours);

  const rest = { systemVersionInfo: 'v1', typeUrl, removedResources: ['b'], nonce: 'n1' };
  const common = { name: 'a', version: '1', aliases: ['x'] };
  const ourDelta = create(DeltaDiscoveryResponseSchema, {
    ...rest,
    resources: [{ ...common, resource: any, ttl: { seconds: 5n } }],
  });
  const envoyDelta = delta.responseSerialize({
    ...rest,
    resources: [{ ...common, resource: { type_url: typeUrl, value }, ttl: { seconds: 5 } }],
  });
  t.same(fromBinary(DeltaDiscoveryResponseSchema, envoyDelta), ourDelta);
  t.same(
    delta.responseDeserialize(Buffer.from(toBinary(DeltaDiscoveryResponseSchema, ourDelta))),
    delta.responseDeserialize(envoyDelta),
  );
});

t.test('the methods have the paths that limiters call', async (t) => {
  const { streamAggregatedResources, deltaAggregatedResources } = AggregatedDiscoveryService.method;
  const pathOf = ({ name }: { readonly name: string }) => `/${AggregatedDiscoveryService.typeName}/${name}`;
  t.equal(pathOf(streamAggregatedResources), sotw.path);
  t.equal(pathOf(deltaAggregatedResources), delta.path);
  t.equal(streamAggregatedResources.methodKind, 'bidi_streaming');
  t.equal(deltaAggregatedResources.methodKind, 'bidi_streaming');
});

t.test(
  'rules, which the tree of Envoy does not have, are on the wire as other limiters read them',
  async (t) => {
    isOnTheWire(
      t,
      RateLimitConfigSchema,
      { name: 'n', domain: 'd', descriptors: [{ key: 'k' }] },
      '0a016e 120164 1a03 0a016b',
    );
    isOnTheWire(
      t,
      RateLimitDescriptorSchema,
      {
        key: 'k',
        value: 'v',
        rateLimit: {},
        descriptors: [{}],
        shadowMode: true,
        detailedMetric: true,
        quotaMode: true,
        metadata: { a: 'b' },
      },
      '0a016b 120176 1a00 2200 2801 3001 3801 420a 0a08 0a0161 1203 1a0162',
    );
    isOnTheWire(
      t,
      RateLimitPolicySchema,
      { unit: 'WEEK', requestsPerUnit: 300, unlimited: true, name: 'n', replaces: [{ name: 'r' }] },
      '0807 10ac02 1801 22016e 2a03 0a0172',
    );
    // Fields 1000 and 1001, which are ours.
    isOnTheWire(t, RateLimitDescriptorSchema, { valueToMetric: true, shareThreshold: true }, 'c03e01 c83e01');
  },
);
