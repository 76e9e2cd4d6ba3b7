import { startAdsServer } from '@tollgate/testkit/ads-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { statsNames } from '../../../src/metrics/names.ts';
import { connect, descriptorsOf, type GrpcTestClient } from '../../support/grpc-client.ts';
import { limitsResponse } from '../../support/limits-response.ts';
import { startApp } from '../../support/start-app.ts';

const envFor = ({ url }: { readonly url: string }, more: Readonly<Record<string, string>> = {}) => ({
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_URL: url,
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '20ms',
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '50ms',
  ...more,
});

/** The limit that requests for `k` in a domain are answered with. */
async function limitOf(client: GrpcTestClient, domain: string): Promise<number | undefined> {
  const { statuses } = await client.shouldRateLimit({ domain, descriptors: descriptorsOf({ k: '' }) });
  return statuses[0]?.currentLimit?.requestsPerUnit;
}

t.test('the ports open after the first set; the debug port is open before', async (t) => {
  const server = await startAdsServer(t);
  const { app, ports } = await startApp(t, { env: envFor(server), start: false });
  const starting = app.lifecycle.start();
  await awaitUntil(() => server.requests.length === 1, { what: 'a subscription' });
  t.equal((await fetch(`http://127.0.0.1:${ports.debug}/rlconfig`)).status, 200);
  t.equal(ports.grpc, 0, 'not open yet');
  t.match(server.requests[0]?.node, { id: 'default', userAgentName: 'tollgate-ratelimit' });

  server.send(limitsResponse('v1', { a: 7 }));
  await starting;
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  t.equal(await limitOf(client, 'a'), 7);
  server.send(limitsResponse('v2', { a: 8 }));
  await awaitUntil(async () => (await limitOf(client, 'a')) === 8, { what: 'the edited limit' });
});

t.test('a service that waits for its first set stops promptly and without an error', async (t) => {
  const server = await startAdsServer(t);
  for (const force of ['false', 'true']) {
    const { app, logLines } = await startApp(t, {
      env: envFor(server, { FORCE_START_WITHOUT_INITIAL_CONFIG: force }),
      start: false,
    });
    const starting = app.lifecycle.start().catch(() => undefined);
    await awaitUntil(() => server.requests.length > 0, { what: 'a subscription' });
    const { failed, late } = await app.lifecycle.stop('SIGTERM');
    await starting;
    t.match({ failed, late }, { failed: false, late: [] }, 'nothing was given up on');
    t.same(
      logLines.filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
    );
  }
});

t.test('FORCE_START_WITHOUT_INITIAL_CONFIG: requests fail until rules are loaded', async (t) => {
  const server = await startAdsServer(t);
  const { ports } = await startApp(t, {
    env: envFor(server, { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' }),
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  await t.rejects(limitOf(client, 'a'), { message: /no rate limit configuration loaded/ });
  server.send(limitsResponse('v1', { a: 7 }));
  await awaitUntil(async () => (await limitOf(client, 'a')) === 7, { what: 'the limit' });
});

t.test('HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED counts the domains of the server', async (t) => {
  const server = await startAdsServer(t);
  server.send(limitsResponse('v1', {}));
  const { app } = await startApp(t, {
    env: envFor(server, { HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true' }),
  });
  t.notOk(app.health.isHealthy(), 'an empty set has none');
  server.send(limitsResponse('v2', { a: 1 }));
  await awaitUntil(() => app.health.isHealthy(), { what: 'health' });
  server.send(limitsResponse('v3', {}));
  await awaitUntil(() => !app.health.isHealthy(), { what: 'no health' });
});

t.test('invalid rules count as a load error, undecodable ones do not; limits stay', async (t) => {
  const server = await startAdsServer(t);
  server.send(limitsResponse('v1', { a: 1 }));
  const { ports, stats, logLines } = await startApp(t, { env: envFor(server) });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const failed = stats.counter(statsNames.configLoadError);
  const good = limitsResponse('v2', { a: 2 });
  const typeUrl = good.typeUrl;

  server.send({ ...good, resources: [{ typeUrl, value: Uint8Array.of(0xff) }] });
  t.ok((await server.answerTo('v2')).errorDetail);
  t.equal(failed.value, 0);

  server.send(limitsResponse('v3', { '': 2 }));
  t.match(await server.answerTo('v3'), { errorDetail: { message: /cannot have empty domain/ } });
  t.equal(failed.value, 1);
  t.ok(logLines.some((line) => line['@message'] === 'keeping the last valid rules'));
  t.equal(await limitOf(client, 'a'), 1);
});
