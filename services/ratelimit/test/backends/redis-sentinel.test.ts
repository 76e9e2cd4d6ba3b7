import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { startRedis } from '@tollgate/testkit/redis';
import { startRedisSentinels } from '@tollgate/testkit/redis-sentinel';
import t, { type Test } from 'tap';
import { redisFromSettings } from '../support/redis-from-settings.ts';
import { counterBackendContract, hitOf } from './counter-backend-contract.ts';

const deployment = await startRedisSentinels({
  sentinels: 2,
  password: 'for-the-data',
  sentinelPassword: 'for-the-sentinels',
});
t.teardown(deployment.stop);
const primary = await deployment.primary();
t.beforeEach(async () => {
  await primary.command('FLUSHALL');
});

const logins = { KVSTORE_AUTH: 'for-the-data', KVSTORE_SENTINEL_AUTH: 'for-the-sentinels' };
const settings = {
  KVSTORE_TYPE: 'sentinel',
  KVSTORE_URL: deployment.address,
  KVSTORE_TIMEOUT: '5s',
  KVSTORE_STARTUP_MAX_ELAPSED_TIME: '30s',
  ...logins,
};
async function started(t: Test, env: Readonly<Record<string, string>> = {}) {
  const parts = await redisFromSettings(t, { ...settings, ...env });
  await parts.backend.start();
  return parts;
}

/** Starts in vain until `reason` is in the log, and answers the log. */
async function failedStart(t: Test, env: Readonly<Record<string, string>>, reason: RegExp): Promise<string> {
  const { backend, logLines } = await redisFromSettings(t, {
    ...settings,
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '0',
    ...env,
  });
  const ended = t.rejects(backend.start(), { message: /closed/ });
  const log = await awaitUntil(
    () => {
      const text = JSON.stringify(logLines);
      return reason.test(text) ? text : '';
    },
    { what: `${reason} in the log`, timeoutMs: 20_000 },
  );
  await backend.close();
  await ended;
  return log;
}

counterBackendContract(t, 'redis behind sentinels', async (t) => (await started(t)).backend);

t.test('counters live on the server that the sentinels name', async (t) => {
  const { backend, health, stats, logLines } = await started(t);
  t.same(await backend.add([hitOf('a', 3)]), [3]);
  t.equal(await primary.command('GET', 'a'), '3');
  t.ok(health.isHealthy());
  t.equal(stats.gauge('ratelimit.redis_pool.cx_active').value, 1);
  const named = logLines.find((line) => line['@message'] === 'the sentinels named the primary');
  t.equal(named?.primary, primary.address);
});

t.test('each login goes where it belongs, and none is logged', async (t) => {
  for (const [env, reason] of [
    [{ KVSTORE_AUTH: 'for-the-sentinels' }, /WRONGPASS/],
    [{ KVSTORE_AUTH: '' }, /NOAUTH/],
    [{ KVSTORE_SENTINEL_AUTH: 'for-the-data' }, /no sentinel names the primary.*WRONGPASS/],
    [{ KVSTORE_SENTINEL_AUTH: '' }, /no sentinel names the primary.*NOAUTH/],
  ] as const) {
    t.notMatch(await failedStart(t, env, reason), /for-the-(data|sentinels)/);
  }
});

t.test('a name that no sentinel knows is told, with all sentinels that were asked', async (t) => {
  const env = { KVSTORE_URL: deployment.address.replace(deployment.master, 'other') };
  const log = await failedStart(t, env, /no sentinel names the primary of other/);
  for (const { address } of deployment.sentinels) {
    t.ok(log.includes(`${address}: it knows no master of that name`), address);
  }
});

t.test('sentinels that are not there are passed over', async (t) => {
  const { backend } = await started(t, { KVSTORE_URL: deployment.address.replace(',', ',127.0.0.1:1,') });
  t.same(await backend.add([hitOf('a')]), [1]);
});

t.test('a start without sentinels gives up after its time, and names them', async (t) => {
  const namesBoth =
    /KVSTORE_STARTUP_MAX_ELAPSED_TIME.*127\.0\.0\.1:1: .*ECONNREFUSED.*127\.0\.0\.1:2: .*ECONNREFUSED/;
  const startsInVain = async (): Promise<boolean> => {
    const { backend } = await redisFromSettings(t, {
      ...settings,
      KVSTORE_URL: 'mymaster,127.0.0.1:1,127.0.0.1:2',
      KVSTORE_STARTUP_MAX_ELAPSED_TIME: '1s',
    });
    const failure: unknown = await backend.start().catch((error: unknown) => error);
    t.match(failure, { message: /KVSTORE_STARTUP_MAX_ELAPSED_TIME/ });
    return namesBoth.test(String(failure));
  };
  // A busy machine may need more than one: the connections have to be refused in that time.
  await awaitUntil(startsInVain, { what: 'both in the reason' });
});

t.test('counters of seconds may live behind sentinels, beside a single server', async (t) => {
  const single = await startRedis();
  t.teardown(single.stop);
  const { backend } = await started(t, {
    KVSTORE_TYPE: 'single',
    KVSTORE_URL: single.address,
    KVSTORE_AUTH: '',
    KVSTORE_SENTINEL_AUTH: '',
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_TYPE: 'SENTINEL',
    KVSTORE_PERSECOND_URL: deployment.address,
    KVSTORE_PERSECOND_TIMEOUT: '5s',
    KVSTORE_PERSECOND_AUTH: logins.KVSTORE_AUTH,
    KVSTORE_PERSECOND_SENTINEL_AUTH: logins.KVSTORE_SENTINEL_AUTH,
  });
  t.same(await backend.add([{ ...hitOf('second', 2), unit: 'second' }, hitOf('minute')]), [2, 1]);
  t.same(await primary.command('KEYS', '*'), ['second']);
});

t.test('with TLS it is spoken to the sentinels and to the primary', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { server, client, ca } = certificates;
  const secure = await startRedisSentinels({
    tls: { certFile: server.certFile, keyFile: server.keyFile, caFile: ca.certFile },
  });
  t.teardown(secure.stop);
  const env = {
    KVSTORE_URL: secure.address,
    KVSTORE_AUTH: '',
    KVSTORE_SENTINEL_AUTH: '',
    KVSTORE_TLS: 'true',
    KVSTORE_TLS_CACERT: ca.certFile,
  };
  const pair = { KVSTORE_TLS_CLIENT_CERT: client.certFile, KVSTORE_TLS_CLIENT_KEY: client.keyFile };
  const { backend } = await started(t, { ...env, ...pair });
  t.same(await backend.add([hitOf('a')]), [1]);
  await failedStart(t, env, /no sentinel names the primary/);
  await failedStart(t, { ...env, ...pair, KVSTORE_TLS: 'false' }, /no sentinel names the primary/);
});
