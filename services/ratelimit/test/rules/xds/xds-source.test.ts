import { create } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { startAdsServer } from '@tollgate/testkit/ads-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { statsNames } from '../../../src/metrics/names.ts';
import { limitsResponse } from '../../support/limits-response.ts';
import { followServer } from '../../support/xds-source.ts';

const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

t.test('a valid set becomes active and is acknowledged; the next one replaces it', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  server.send(limitsResponse('v1', { a: 1, b: 2 }));
  const ack = await server.answerTo('v1');
  t.match(ack, { versionInfo: 'v1', errorDetail: undefined, typeUrl });
  t.equal(ack.node, undefined, 'the node is in the first request of a stream only');
  await source.started;
  await source.inForce('a', 1);
  await source.inForce('b', 2);
  t.equal(source.stats.gauge(statsNames.xdsConnected).value, 1);

  server.send(limitsResponse('v2', { b: 3 }));
  t.match(await server.answerTo('v2'), { versionInfo: 'v2', errorDetail: undefined });
  await source.inForce('a', undefined);
  await source.inForce('b', 3);
  t.equal(source.stats.counter(statsNames.xdsAccepted).value, 2);
});

t.test('rules that have matched are reported in the metadata of a repeated ACK', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url, {
    client: {
      node: { id: 'pod-1', userAgentName: 'tollgate-ratelimit', metadata: { zone: 'a' } },
      reportIntervalMs: 20,
    },
  });
  server.send(limitsResponse('v1', { a: 1, b: 2 }));
  const ack = await server.answerTo('v1');
  const reports = () =>
    server.requests.filter(({ node }) => node?.metadata?.['tollgate.dev/matched-rules'] !== undefined);
  await awaitUntil(() => reports().length === 1, { what: 'the first report' });
  t.match(reports()[0], {
    typeUrl,
    versionInfo: 'v1',
    responseNonce: ack.responseNonce,
    resourceNames: [],
    errorDetail: undefined,
    node: { id: 'pod-1', metadata: { zone: 'a', 'tollgate.dev/matched-rules': {} } },
  });
  const load = source.loads[0];
  const match =
    load?.ok === true ? load.rules.domains.get('a')?.children?.values().next().value?.match : undefined;
  if (match === undefined) throw new Error('domain a has a rule');
  match.rule.matched = true;
  await awaitUntil(() => reports().length === 2, { what: 'the second report' });
  t.strictSame(reports()[1]?.node?.metadata?.['tollgate.dev/matched-rules'], { a: 'AQ==' });
  server.send(limitsResponse('v2', { a: 1, b: 3 }));
  await server.answerTo('v2');
  await source.inForce('b', 3);
  t.equal(reports().length, 2, 'nothing new');
});

t.test('an empty set removes all rules and is logged as a warning', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  server.send(limitsResponse('v1', { a: 1 }));
  await source.inForce('a', 1);
  server.send(limitsResponse('v2', {}));
  t.match(await server.answerTo('v2'), { versionInfo: 'v2', errorDetail: undefined });
  await source.inForce('a', undefined);
  t.match(await source.logged(/configuration is empty/), { level: 'warn', version: 'v2' });
});

t.test('invalid rules are rejected with all problems; the active rules stay', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  server.send(limitsResponse('v1', { a: 1 }));
  await source.inForce('a', 1);

  const wrong = create(RateLimitConfigSchema, {
    name: 'tenant',
    domain: 'b',
    descriptors: [{ key: 'k', rateLimit: { requestsPerUnit: 1 } }, { key: '' }],
  });
  const good = limitsResponse('v2', { a: 9 });
  server.send({ ...good, resources: [...(good.resources ?? []), anyPack(RateLimitConfigSchema, wrong)] });
  const nack = await server.answerTo('v2');
  t.equal(nack.versionInfo, 'v1', 'the version that stays in force');
  t.equal(nack.errorDetail?.message, "tenant: invalid rate limit unit ''\ntenant: descriptor has empty key");
  t.match(source.loads[1], { ok: false, problems: [{ path: 'b.k' }, { path: 'b' }] });
  await source.inForce('a', 1);
  t.equal(source.stats.counter(statsNames.xdsRejected).value, 1);

  server.send(limitsResponse('v3', { a: 3 }));
  t.match(await server.answerTo('v3'), { versionInfo: 'v3', errorDetail: undefined });
  await source.inForce('a', 3);
});

t.test('the text of a rejection is bounded', async (t) => {
  const server = await startAdsServer(t);
  followServer(t, server.url);
  const descriptors = Array.from({ length: 50 }, (_, i) => ({
    key: `${'x'.repeat(300)}${i}`,
    rateLimit: {},
  }));
  const wrong = create(RateLimitConfigSchema, { name: 'n'.repeat(200), domain: 'b', descriptors });
  server.send({ versionInfo: 'v1', typeUrl, resources: [anyPack(RateLimitConfigSchema, wrong)] });
  const message = (await server.answerTo('v1')).errorDetail?.message ?? '';
  t.ok(message.length > 1_000 && message.length <= 4_096, `${message.length} characters`);
  t.match(message, /(… and 30 more|…)$/);
});

t.test('two resources of one domain are a problem, unless MERGE_DOMAIN_CONFIG', async (t) => {
  const resource = (name: string, key: string) =>
    anyPack(
      RateLimitConfigSchema,
      create(RateLimitConfigSchema, {
        name,
        domain: 'd',
        descriptors: [{ key, rateLimit: { unit: 1, requestsPerUnit: 1 } }],
      }),
    );
  const server = await startAdsServer(t);
  const response = { versionInfo: 'v1', typeUrl, resources: [resource('one', 'k'), resource('two', 'l')] };
  server.send(response);
  followServer(t, server.url);
  t.match(await server.answerTo('v1', 1), {
    versionInfo: '',
    errorDetail: { message: /^two: duplicate domain 'd' in config file/ },
  });

  const merging = await startAdsServer(t);
  merging.send(response);
  const source = followServer(t, merging.url, { compile: { mergeDomains: true } });
  t.match(await merging.answerTo('v1'), { versionInfo: 'v1', errorDetail: undefined });
  t.match(source.loads, [{ ok: true, rules: { ruleCount: 2 } }]);
});

t.test('an undecodable resource is rejected without a load, and the gauge says so', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  server.send({ versionInfo: 'v1', typeUrl, resources: [{ typeUrl, value: Uint8Array.of(0x0a, 9, 1) }] });
  t.match(await server.answerTo('v1'), {
    versionInfo: '',
    errorDetail: { message: /^resource 0 cannot be decoded: / },
  });
  t.equal(source.stats.gauge(statsNames.configCurrent).value, 0);
  t.same(source.loads, []);
});

t.test('the active set is not loaded again on a new stream', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  server.send(limitsResponse('v1', { a: 1 }));
  await source.inForce('a', 1);
  server.endStreams();
  t.match(await server.answerTo('v1', 2), { versionInfo: 'v1', errorDetail: undefined });
  t.equal(source.loads.length, 1);
});
