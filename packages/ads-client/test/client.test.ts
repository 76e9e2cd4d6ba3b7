import { Server, ServerCredentials } from '@grpc/grpc-js';
import { startAdsServer } from '@tollgate/testkit/ads-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import { followServer, textsResponse, typeUrl } from './helpers/follow-server.ts';

t.test('subscribes to all resources as its node, with its headers', async (t) => {
  const server = await startAdsServer(t);
  followServer(t, server.url, {
    node: { id: 'pod-1', userAgentName: 'tollgate-test', metadata: { zone: 'a' } },
    stream: { headers: { authorization: 'Bearer abc', 'x-team': 'edge' } },
  });
  await awaitUntil(() => server.requests.length > 0, { what: 'a request' });
  const [first] = server.requests;
  t.match(first, { typeUrl, versionInfo: '', responseNonce: '', resourceNames: [], errorDetail: undefined });
  t.match(first?.node, { id: 'pod-1', metadata: { zone: 'a' }, userAgentName: 'tollgate-test' });
  t.same(server.headers[0]?.get('authorization'), ['Bearer abc']);
  t.same(server.headers[0]?.get('x-team'), ['edge']);
});

t.test('a valid set is applied and acknowledged; the next one replaces it', async (t) => {
  const server = await startAdsServer(t);
  const client = followServer(t, server.url);
  server.send(textsResponse('v1', 'a', 'b'));
  const ack = await server.answerTo('v1');
  t.match(ack, { versionInfo: 'v1', errorDetail: undefined, typeUrl });
  t.equal(ack.node, undefined, 'the node is in the first request of a stream only');
  await client.started;
  await client.inForce('a', 'b');
  server.send(textsResponse('v2', 'c'));
  t.match(await server.answerTo('v2'), { versionInfo: 'v2', errorDetail: undefined });
  await client.inForce('c');
  t.same([client.connected, client.answers], [[true], [true, true]]);
});

t.test('a set that is not applied is rejected with the version in force, and a bounded text', async (t) => {
  const server = await startAdsServer(t);
  const client = followServer(t, server.url);
  server.send(textsResponse('v1', 'a'));
  await client.inForce('a');
  server.send(textsResponse('v2', `bad${' '.repeat(5_000)}`));
  const { versionInfo, errorDetail } = await server.answerTo('v2');
  t.equal(versionInfo, 'v1');
  t.match(errorDetail?.message, /^bad {4092}…$/);
  server.send(textsResponse('v3', 'b'));
  t.match(await server.answerTo('v3'), { versionInfo: 'v3', errorDetail: undefined });
  t.same(client.answers, [true, false, true]);
});

t.test('a report is in the metadata of a repeated ACK, and only while an ACK was sent', async (t) => {
  const server = await startAdsServer(t);
  const reports: string[] = [];
  const node = { id: 'pod-1', userAgentName: 'tollgate-test', metadata: { zone: 'a' } };
  const client = followServer(t, server.url, { node, reports, reportIntervalMs: 20 });
  server.send(textsResponse('v1', 'bad'));
  await server.answerTo('v1');
  reports.push('early');
  server.send(textsResponse('v2', 'a'));
  const { responseNonce } = await server.answerTo('v2');
  await client.inForce('a');
  const seen = () => server.requests.filter((request) => request.node?.metadata?.text !== undefined);
  await awaitUntil(() => seen().length === 1, { what: 'a report' });
  t.match(seen()[0], {
    typeUrl,
    versionInfo: 'v2',
    responseNonce,
    resourceNames: [],
    errorDetail: undefined,
    node: { ...node, metadata: { zone: 'a', text: 'early' } },
  });
});

t.test('a report repeats a NACK if the rest of the set is in force', async (t) => {
  const server = await startAdsServer(t);
  const reports: string[] = [];
  const client = followServer(t, server.url, { reports, reportIntervalMs: 20 });
  server.send(textsResponse('v1', 'a'));
  await server.answerTo('v1');
  server.send(textsResponse('v2', 'partly bad', 'b'));
  const nack = await server.answerTo('v2');
  t.match(nack, { versionInfo: 'v1', errorDetail: { code: 3, message: 'partly bad is rejected' } });
  await client.inForce('b');
  reports.push('news');
  const seen = () => server.requests.filter(({ node }) => node?.metadata?.text !== undefined);
  await awaitUntil(() => seen().length === 1, { what: 'a report' });
  const { versionInfo, responseNonce, errorDetail } = nack;
  t.match(seen()[0], { versionInfo, responseNonce, errorDetail, node: { metadata: { text: 'news' } } });
});

t.test('undecodable responses and other types are rejected, and nothing is applied', async (t) => {
  const server = await startAdsServer(t);
  const client = followServer(t, server.url);
  const resources = [{ typeUrl, value: Uint8Array.of(0x0a, 9, 1) }];
  server.send({ versionInfo: 'v1', typeUrl, resources });
  t.match(await server.answerTo('v1'), {
    versionInfo: '',
    typeUrl,
    errorDetail: { code: 3, message: /premature EOF|index out of range/i },
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
    resources: [{ typeUrl: 'type.googleapis.com/google.protobuf.BytesValue', value: Uint8Array.of() }],
  });
  t.match(await server.answerTo('v3'), {
    errorDetail: { message: /resource 0 is of type '.*BytesValue'/ },
  });
  t.same(client.answers, [false, false, false]);
  t.same(client.sets, []);
  t.match(await client.logged(/configuration rejected/), { level: 'error', version: 'v1' });
});

t.test('another prefix of the type URL is the same type', async (t) => {
  const server = await startAdsServer(t);
  const client = followServer(t, server.url);
  const { resources = [] } = textsResponse('v1', 'a');
  const prefixed = typeUrl.replace('type.googleapis.com', 'types.example');
  server.send({
    versionInfo: 'v1',
    typeUrl: prefixed,
    resources: resources.map((any) => ({ ...any, typeUrl: prefixed })),
  });
  await client.inForce('a');
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

t.test(
  'the active set stays while the server is unreachable, and is updated once it is reachable',
  async (t) => {
    const server = await startAdsServer(t);
    const client = followServer(t, server.url);
    server.send(textsResponse('v1', 'a'));
    await client.inForce('a');
    server.stop();
    t.match(await client.logged(/management server unreachable/), {
      level: 'warn',
      reason: /ECONNREFUSED [\d.:]+$/,
    });
    t.equal(client.connected.at(-1), false);
    await client.inForce('a');

    const back = await startAdsServer(t, { port: server.port });
    back.send(textsResponse('v1', 'a'));
    const ack = await back.answerTo('v1');
    t.match(ack, { versionInfo: 'v1', errorDetail: undefined });
    t.match(back.requests[0], { versionInfo: '', responseNonce: '', node: { id: 'test' } });
    back.send(textsResponse('v2', 'b'));
    await client.inForce('b');
  },
);

t.test('a stream that the server ends is reopened, with the node', async (t) => {
  const server = await startAdsServer(t);
  const client = followServer(t, server.url);
  server.send(textsResponse('v1', 'a'));
  await client.inForce('a');
  server.endStreams();
  await awaitUntil(() => server.headers.length >= 2, { what: 'a second stream' });
  t.match(await server.answerTo('v1', 2), { versionInfo: 'v1' });
  t.match(await client.logged(/management server ended the stream/), { level: 'info' });
});

t.test('invalid responses end the stream, and the next stream works', async (t) => {
  const server = await startAdsServer(t);
  const client = followServer(t, server.url);
  await awaitUntil(() => server.requests.length === 1, { what: 'a subscription' });
  server.sendRaw(Uint8Array.of(0xff, 0xff));
  t.match(await client.logged(/ended the stream without/), { level: 'warn' });
  server.send(textsResponse('v1', 'a'));
  await client.inForce('a');
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
  const client = followServer(t, `localhost:${port}`, {}, { sleep });
  t.match(await client.logged(/ended the stream without a configuration/), { reason: /UNIMPLEMENTED/ });
  await awaitUntil(() => slept.length >= 4, { what: 'four pauses' });
  t.same(slept.slice(0, 4), [40, 80, 100, 100], 'and is called less and less often');
});

t.test(
  'a response above the maximum size is logged with the setting, and the active set stays',
  async (t) => {
    const server = await startAdsServer(t);
    const client = followServer(t, server.url, { stream: { maxMessageBytes: 1_000 } });
    server.send(textsResponse('v1', 'a'));
    await client.inForce('a');
    server.send(textsResponse('v2', 'a'.repeat(1_000)));
    t.match(await client.logged(/larger than the maximum/), {
      level: 'error',
      maxMessageBytes: 1_000,
      setting: 'MAX_MESSAGE_BYTES',
    });
    await client.inForce('a');
  },
);

t.test('a start waits for an accepted set, and logs that it waits', async (t) => {
  const server = await startAdsServer(t);
  const client = followServer(t, server.url, {}, { waitLogMs: 10 });
  let isStarted = false;
  const noted = client.started.then(() => {
    isStarted = true;
  });
  t.match(await client.logged(/waiting for the first configuration/), { level: 'warn', server: server.url });
  server.send({ versionInfo: 'v1', typeUrl, resources: [{ typeUrl, value: Uint8Array.of(0xff) }] });
  await server.answerTo('v1');
  t.notOk(isStarted);
  server.send(textsResponse('v2'));
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
  const silent = followServer(t, server.url, { signal: stop.signal });
  await awaitUntil(() => server.requests.length === 1, { what: 'a subscription' });
  stop.abort();
  await silent.started;

  await followServer(t, server.url, { signal: AbortSignal.abort() }).started;
  t.equal(server.headers.length, 1);
});
