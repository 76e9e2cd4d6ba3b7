import { create } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import {
  RateLimitConfigSchema,
  RateLimitReplaceSchema,
} from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import { statsNames } from '../../../src/metrics/names.ts';
import { ReconnectBackoff } from '../../../src/rules/xds/xds-source.ts';
import { limitsResponse, startAdsServer } from '../../support/ads-server.ts';
import { followServer } from '../../support/xds-source.ts';

const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

t.test('subscribes to all resources as its node, with its headers', async (t) => {
  const server = await startAdsServer(t);
  followServer(t, server.url, {
    node: { id: 'pod-1', metadata: { zone: 'a' } },
    stream: { headers: { authorization: 'Bearer abc', 'x-team': 'edge' } },
  });
  await awaitUntil(() => server.requests.length > 0, { what: 'a request' });
  const [first] = server.requests;
  t.match(first, { typeUrl, versionInfo: '', responseNonce: '', resourceNames: [], errorDetail: undefined });
  t.match(first?.node, { id: 'pod-1', metadata: { zone: 'a' }, userAgentName: 'tollgate-ratelimit' });
  t.same(server.headers[0]?.get('authorization'), ['Bearer abc']);
  t.same(server.headers[0]?.get('x-team'), ['edge']);
});

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
    node: { id: 'pod-1', metadata: { zone: 'a' } },
    matchReportIntervalMs: 20,
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
  const source = followServer(t, merging.url, { mergeDomains: true });
  t.match(await merging.answerTo('v1'), { versionInfo: 'v1', errorDetail: undefined });
  t.match(source.loads, [{ ok: true, rules: { ruleCount: 2 } }]);
});

t.test('undecodable responses and other types are rejected without a load', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  const resources = [{ typeUrl, value: Uint8Array.of(0x0a, 9, 1) }];
  server.send({ versionInfo: 'v1', typeUrl, resources });
  t.match(await server.answerTo('v1'), {
    versionInfo: '',
    typeUrl,
    errorDetail: { code: 3, message: /^resource 0 cannot be decoded: / },
  });

  const other = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
  server.send({ versionInfo: 'v2', typeUrl: other });
  t.match(await server.answerTo('v2'), {
    typeUrl,
    errorDetail: { message: /the response is of type '.*Cluster'/ },
  });
  server.send({
    versionInfo: 'v3',
    typeUrl,
    resources: [anyPack(RateLimitReplaceSchema, create(RateLimitReplaceSchema))],
  });
  t.match(await server.answerTo('v3'), {
    errorDetail: { message: /resource 0 is of type '.*RateLimitReplace'/ },
  });
  t.equal(source.stats.gauge(statsNames.configCurrent).value, 0);
  t.same(source.loads, []);
  t.match(await source.logged(/configuration rejected/), { level: 'error', version: 'v1' });
});

t.test('another prefix of the type URL is the same type', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  const { resources = [] } = limitsResponse('v1', { a: 1 });
  const prefixed = typeUrl.replace('type.googleapis.com', 'types.example');
  server.send({
    versionInfo: 'v1',
    typeUrl: prefixed,
    resources: resources.map((any) => ({ ...any, typeUrl: prefixed })),
  });
  await source.inForce('a', 1);
});

t.test('the reply to a resent rejected version is delayed', async (t) => {
  const server = await startAdsServer(t);
  const slept: number[] = [];
  const naive = new Promise<void>((resolve) => {
    followServer(
      t,
      server.url,
      {},
      {
        sleep: (ms) => {
          slept.push(ms);
          resolve();
          return Promise.resolve();
        },
      },
    );
  });
  const bad = { versionInfo: 'v1', typeUrl, resources: [{ typeUrl, value: Uint8Array.of(0xff) }] };
  server.send(bad);
  await server.answerTo('v1');
  t.same(slept, []);
  server.send(bad);
  await naive;
  t.same(slept, [1_000]);
});

t.test('the rules stay while the server is unreachable, and are updated once it is reachable', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  server.send(limitsResponse('v1', { a: 1 }));
  await source.inForce('a', 1);
  server.stop();
  t.match(await source.logged(/management server unreachable/), {
    level: 'warn',
    reason: /ECONNREFUSED [\d.:]+$/,
  });
  t.equal(source.stats.gauge(statsNames.xdsConnected).value, 0);
  await source.inForce('a', 1);

  const back = await startAdsServer(t, { port: server.port });
  back.send(limitsResponse('v1', { a: 1 }));
  const ack = await back.answerTo('v1');
  t.match(ack, { versionInfo: 'v1', errorDetail: undefined });
  t.match(back.requests[0], { versionInfo: '', responseNonce: '', node: { id: 'test' } });
  t.equal(source.loads.length, 1, 'the same set is not loaded again');
  back.send(limitsResponse('v2', { a: 2 }));
  await source.inForce('a', 2);
});

t.test('a stream that the server ends is reopened, with the node', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  server.send(limitsResponse('v1', { a: 1 }));
  await source.inForce('a', 1);
  server.endStreams();
  await awaitUntil(() => server.headers.length >= 2, { what: 'a second stream' });
  t.match(await server.answerTo('v1', 2), { versionInfo: 'v1' });
  t.match(await source.logged(/management server ended the stream/), { level: 'info' });
});

t.test('invalid responses end the stream, and the next stream works', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url);
  await awaitUntil(() => server.requests.length === 1, { what: 'a subscription' });
  server.sendRaw(Uint8Array.of(0xff, 0xff));
  t.match(await source.logged(/ended the stream without/), { level: 'warn' });
  server.send(limitsResponse('v1', { a: 1 }));
  await source.inForce('a', 1);
});

t.test('a server without ADS is logged with its error', async (t) => {
  const server = new Server();
  t.teardown(() => server.forceShutdown());
  const port = await new Promise<number>((resolve) => {
    // By its address: the name would be looked up in DNS.
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_, bound) => resolve(bound));
  });
  const slept: number[] = [];
  const sleep = async (ms: number): Promise<void> => void slept.push(ms);
  const source = followServer(t, `localhost:${port}`, {}, { sleep });
  t.match(await source.logged(/ended the stream without a configuration/), { reason: /UNIMPLEMENTED/ });
  await awaitUntil(() => slept.length >= 4, { what: 'four pauses' });
  t.same(slept.slice(0, 4), [40, 80, 100, 100], 'and is called less and less often');
});

t.test('a response above the maximum size is logged with the setting, and the rules stay', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url, { stream: { maxMessageBytes: 1_000 } });
  server.send(limitsResponse('v1', { a: 1 }));
  await source.inForce('a', 1);
  server.send(limitsResponse('v2', Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`d${i}`, 1]))));
  t.match(await source.logged(/larger than XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES/), {
    level: 'error',
    maxMessageBytes: 1_000,
  });
  await source.inForce('a', 1);
});

t.test('a start waits for an accepted set, and logs that it waits', async (t) => {
  const server = await startAdsServer(t);
  const source = followServer(t, server.url, {}, { waitLogMs: 10 });
  let isStarted = false;
  const noted = source.started.then(() => {
    isStarted = true;
  });
  t.match(await source.logged(/waiting for the first configuration/), { level: 'warn', server: server.url });
  server.send({ versionInfo: 'v1', typeUrl, resources: [{ typeUrl, value: Uint8Array.of(0xff) }] });
  await server.answerTo('v1');
  t.notOk(isStarted);
  server.send(limitsResponse('v2', {}));
  await noted;
});

t.test('close and abort end a waiting start', async (t) => {
  const port = await freePort();
  const away = followServer(t, `localhost:${port}`, {
    backoff: { connectRetryMs: 60_000, initialMs: 60_000, maxMs: 60_000, jitter: 0 },
  });
  await away.logged(/server unreachable/);
  await away.close();
  await away.started;

  const server = await startAdsServer(t);
  const stop = new AbortController();
  const silent = followServer(t, server.url, {}, { signal: stop.signal });
  await awaitUntil(() => server.requests.length === 1, { what: 'a subscription' });
  stop.abort();
  await silent.started;

  await followServer(t, server.url, {}, { signal: AbortSignal.abort() }).started;
  t.equal(server.headers.length, 1);
});

const defaults = { connectRetryMs: 3_000, initialMs: 10_000, maxMs: 60_000, jitter: 0.5 };
const middle = () => 0.5;

const lost = { connected: true, delivered: true };
const unreachable = { connected: false, delivered: false };
const refused = { connected: true, delivered: false };

t.test('an unreachable server is retried within five seconds, however long it is away', async (t) => {
  for (const drawn of [0, 0.5, 1]) {
    const backoff = new ReconnectBackoff(defaults, () => drawn);
    const outage = [lost, ...Array.from({ length: 100 }, () => unreachable)].map((ended) =>
      backoff.delayAfterMs(ended),
    );
    t.same(new Set(outage), new Set([1_500 + drawn * 3_000]));
  }
});

t.test('a server that ends streams without a response gets a growing backoff', async (t) => {
  const backoff = new ReconnectBackoff(defaults, middle);
  const pauses = [refused, refused, refused, refused, refused].map((ended) => backoff.delayAfterMs(ended));
  t.same(pauses, [10_000, 20_000, 40_000, 60_000, 60_000]);
  t.equal(backoff.delayAfterMs(unreachable), 3_000, 'until it restarts');
  t.equal(backoff.delayAfterMs(refused), 10_000);
});

t.test('pauses are limited to the maximum of a timer', async (t) => {
  const connectRetryMs = 480 * 3_600_000;
  const backoff = new ReconnectBackoff({ ...defaults, connectRetryMs }, () => 0.999);
  t.equal(backoff.delayAfterMs(lost), 2 ** 31 - 1);
});

t.test('a stream with a response resets the backoff', async (t) => {
  const backoff = new ReconnectBackoff(defaults, middle);
  for (let i = 0; i < 9; i++) backoff.delayAfterMs(refused);
  t.equal(backoff.delayAfterMs(lost), 3_000);
  for (let i = 0; i < 9; i++) t.equal(backoff.delayAfterMs(lost), 3_000, 'however often it is lost');
});

t.test('short pauses have 50 % jitter, growing ones the configured one, up to the maximum', async (t) => {
  for (const [drawn, short, grown] of [
    [0, 1_500, 5_000],
    [1, 4_500, 15_000],
  ] as const) {
    const backoff = new ReconnectBackoff(defaults, () => drawn);
    t.equal(backoff.delayAfterMs(lost), short);
    t.equal(backoff.delayAfterMs(refused), grown);
    for (let i = 0; i < 9; i++) t.ok(backoff.delayAfterMs(refused) <= 60_000);
  }
  const without = new ReconnectBackoff({ ...defaults, jitter: 0 }, () => 1);
  t.equal(without.delayAfterMs(refused), 10_000);
});
