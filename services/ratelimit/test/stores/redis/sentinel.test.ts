import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { type RedisReply, redisCommand, startRedis } from '@tollgate/testkit/redis';
import { startRedisSentinels } from '@tollgate/testkit/redis-sentinel';
import t, { type Test } from 'tap';
import { parseRedisAddress, type TcpRedisAddress } from '../../../src/config/redis-target.ts';
import { StatsRegistry } from '../../../src/metrics/registry.ts';
import { RedisConnection } from '../../../src/stores/redis/connection.ts';
import type { PooledInstanceOptions, RedisInstance } from '../../../src/stores/redis/instance.ts';
import { SentinelInstance } from '../../../src/stores/redis/sentinel.ts';
import { PoolMetrics } from '../../../src/stores/redis/telemetry.ts';
import { peek, take } from '../../support/counts.ts';
import { answerCommands, type InvalidServer, startInvalidServer } from '../../support/invalid-server.ts';
import { redisFromSettings } from '../../support/redis-from-settings.ts';
import { counterBackendContract, makeHit } from '../counter-store-contract.ts';

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
  await parts.store.start();
  return parts;
}

/** Tries to start until `reason` is in the log, and returns the log. */
async function failedStart(t: Test, env: Readonly<Record<string, string>>, reason: RegExp): Promise<string> {
  const { store, logLines } = await redisFromSettings(t, {
    ...settings,
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '0',
    ...env,
  });
  const ended = t.rejects(store.start(), { message: /closed/ });
  const log = await awaitUntil(
    () => {
      const text = JSON.stringify(logLines);
      return reason.test(text) ? text : '';
    },
    { what: `${reason} in the log`, timeoutMs: 20_000 },
  );
  await store.close();
  await ended;
  return log;
}

counterBackendContract(t, 'redis behind sentinels', async (t) => (await started(t)).store);

t.test('counters are on the primary that the sentinels name', async (t) => {
  const { store, health, stats, logLines } = await started(t);
  t.same(await take(store, [makeHit('a', 3)]), [3]);
  t.equal(await primary.command('GET', 'a'), '3');
  t.ok(health.isHealthy());
  t.equal(stats.gauge('ratelimit.redis_pool.cx_active').value, 1);
  const named = logLines.find((line) => line['@message'] === 'sentinels named the primary');
  t.equal(named?.primary, primary.address);
});

t.test('each login is sent to its servers, and none is logged', async (t) => {
  for (const [env, reason] of [
    [{ KVSTORE_AUTH: 'for-the-sentinels' }, /WRONGPASS/],
    [{ KVSTORE_AUTH: '' }, /NOAUTH/],
    [{ KVSTORE_SENTINEL_AUTH: 'for-the-data' }, /no sentinel names the primary.*WRONGPASS/],
    [{ KVSTORE_SENTINEL_AUTH: '' }, /no sentinel names the primary.*NOAUTH/],
  ] as const) {
    t.notMatch(await failedStart(t, env, reason), /for-the-(data|sentinels)/);
  }
});

t.test('an unknown master is an error with all queried sentinels', async (t) => {
  const env = { KVSTORE_URL: deployment.address.replace(deployment.master, 'other') };
  const log = await failedStart(t, env, /no sentinel names the primary of other/);
  for (const { address } of deployment.sentinels) {
    t.ok(log.includes(`${address}: it knows no master of that name`), address);
  }
});

t.test('unreachable sentinels are skipped', async (t) => {
  const { store } = await started(t, { KVSTORE_URL: deployment.address.replace(',', ',127.0.0.1:1,') });
  t.same(await take(store, [makeHit('a')]), [1]);
});

t.test('a start without sentinels times out and names them', async (t) => {
  const namesBoth =
    /KVSTORE_STARTUP_MAX_ELAPSED_TIME.*127\.0\.0\.1:1: .*ECONNREFUSED.*127\.0\.0\.1:2: .*ECONNREFUSED/;
  const failsToStart = async (): Promise<boolean> => {
    const { store } = await redisFromSettings(t, {
      ...settings,
      KVSTORE_URL: 'mymaster,127.0.0.1:1,127.0.0.1:2',
      KVSTORE_STARTUP_MAX_ELAPSED_TIME: '1s',
    });
    const failure: unknown = await store.start().catch((error: unknown) => error);
    t.match(failure, { message: /KVSTORE_STARTUP_MAX_ELAPSED_TIME/ });
    return namesBoth.test(String(failure));
  };
  // A busy machine may need more than one: the connections have to be refused in that time.
  await awaitUntil(failsToStart, { what: 'both in the reason' });
});

t.test('counters of seconds may be on Sentinel beside a single server', async (t) => {
  const single = await startRedis();
  t.teardown(single.stop);
  const { store } = await started(t, {
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
  t.same(await take(store, [{ ...makeHit('second', 2), unit: 'second' }, makeHit('minute')]), [2, 1]);
  t.same(await primary.command('KEYS', '*'), ['second']);
});

t.test('TLS applies to the sentinels and to the primary', async (t) => {
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
  const { store } = await started(t, { ...env, ...pair });
  t.same(await take(store, [makeHit('a')]), [1]);
  await failedStart(t, env, /no sentinel names the primary/);
  await failedStart(t, { ...env, ...pair, KVSTORE_TLS: 'false' }, /no sentinel names the primary/);
});

const [first, second] = await Promise.all([startRedis(), startRedis()]);
t.teardown(() => Promise.all([first.stop(), second.stop()]));
t.beforeEach(async () => {
  await Promise.all([at(first, 'FLUSHALL'), at(second, 'FLUSHALL')]);
});

function at(server: { host: string; port: number }, ...words: string[]): Promise<RedisReply> {
  return redisCommand(server, ...words);
}

/** Reply of a sentinel about the primary. */
function naming({ address }: { address: string }): string {
  const [host = '', port = ''] = address.split(':');
  return `*2\r\n$${host.length}\r\n${host}\r\n$${port.length}\r\n${port}\r\n`;
}

interface StubSentinel extends InvalidServer {
  /**
   * Reply from now on; `hang up` closes all connections instead, and nothing at all when empty.
   */
  reply: string;
}

async function startStubSentinel(t: Test, reply: string): Promise<StubSentinel> {
  const server = await startInvalidServer(t, (socket) => {
    if (stub.reply === 'hang up') {
      socket.destroy();
    }
    answerCommands(socket, () => {
      if (stub.reply === 'hang up') {
        socket.destroy();
        return '';
      }
      return stub.reply;
    });
  });
  const stub: StubSentinel = { ...server, reply };
  return stub;
}

function tcp(text: string): TcpRedisAddress {
  const parsed = parseRedisAddress(text, 'tcp');
  if (!parsed.ok || parsed.address.kind !== 'tcp') {
    throw new TypeError(`bad address in a test: ${text}`);
  }
  return parsed.address;
}

interface TestInstance {
  readonly instance: RedisInstance;
  /** Reports, in order. */
  readonly events: string[];
}

function makeInstance(
  t: Test,
  sentinels: readonly { address: string }[],
  {
    timeoutMs = 20_000,
    replyTimeoutMs = 20_000,
    breaker,
  }: Pick<PooledInstanceOptions, 'breaker'> & { timeoutMs?: number; replyTimeoutMs?: number } = {},
): TestInstance {
  const events: string[] = [];
  const connect = (address: TcpRedisAddress) => new RedisConnection({ address });
  const instance = new SentinelInstance(
    {
      openPrimary: connect,
      openSentinel: connect,
      onPrimary: ({ host, port }) => events.push(`primary ${host}:${port}`),
      onSentinels: (error) => events.push(error === undefined ? 'sentinels back' : error.message),
      onError: () => events.push('error'),
      metrics: new PoolMetrics('redis', new StatsRegistry()),
      startDelayMs: () => 10,
      reconnectDelayMs: () => 10,
    },
    {
      master: 'mymaster',
      sentinels: sentinels.map(({ address }) => tcp(address)),
      ...{ pollIntervalMs: 10, replyTimeoutMs },
      ...{ size: 10, onEmpty: 'create', onEmptyWaitMs: 1_000, windowMs: 0, timeoutMs, breaker },
    },
  );
  t.teardown(() => instance.close());
  return { instance, events };
}

const patience = { timeoutMs: 20_000 };

/** Waits until counting succeeds. */
async function countsAgain(instance: RedisInstance): Promise<void> {
  const counts = () => take(instance, [makeHit('again')]).then(Boolean, () => false);
  await awaitUntil(counts, { what: 'counting again', ...patience });
}

t.test('after a failover hits go to the new primary, and those in flight end at the old one', async (t) => {
  const sentinel = await startStubSentinel(t, naming(first));
  const { instance, events } = makeInstance(t, [sentinel]);
  await instance.start();
  t.same(await take(instance, [makeHit('a')]), [1]);
  await at(first, 'CLIENT', 'PAUSE', '60000', 'WRITE');
  const working = take(instance, [makeHit('a')]);
  await awaitUntil(async () => /blocked_clients:1/.test(String(await at(first, 'INFO', 'clients'))), {
    what: 'the request at the old primary',
    ...patience,
  });
  sentinel.reply = naming(second);
  await awaitUntil(() => events.includes(`primary ${second.address}`), { what: 'the news', ...patience });
  t.same(await take(instance, [makeHit('a')]), [1], 'the new one starts with what it has');
  await at(first, 'CLIENT', 'UNPAUSE');
  t.same(await working, [2]);
  await awaitUntil(async () => /connected_clients:1\r/.test(String(await at(first, 'INFO', 'clients'))), {
    what: 'the end of all connections to the old primary',
    ...patience,
  });
  t.same(events, [`primary ${first.address}`, `primary ${second.address}`]);
});

t.test('a primary that stopped responding is left once another one is named', async (t) => {
  const silent = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name]) => (name === 'ping' ? '+PONG\r\n' : '')),
  );
  const sentinel = await startStubSentinel(t, naming(silent));
  const { instance, events } = makeInstance(t, [sentinel], { timeoutMs: 600_000 });
  await instance.start();
  const lost = t.rejects(take(instance, [makeHit('a')]), { code: 'backend_failure' });
  sentinel.reply = naming(second);
  await awaitUntil(() => events.includes(`primary ${second.address}`), { what: 'the news', ...patience });
  t.same(await take(instance, [makeHit('a')]), [1]);
  instance.close();
  await lost;
});

t.test(
  'a demoted primary fails one request; the next ones fail at once until another is named',
  async (t) => {
    t.teardown(() => at(first, 'REPLICAOF', 'NO', 'ONE'));
    const sentinel = await startStubSentinel(t, naming(first));
    // Open for longer than the test, unless another primary closes it.
    const breaker = { failures: 1, delayMs: () => 600_000 };
    const { instance } = makeInstance(t, [sentinel], { breaker });
    await instance.start();
    await take(instance, [makeHit('a')]);
    await at(first, 'REPLICAOF', '127.0.0.1', '1');
    await t.rejects(take(instance, [makeHit('a')]), { code: 'backend_failure', message: /^READONLY/ });
    await t.rejects(take(instance, [makeHit('a')]), { message: /^the circuit breaker is open: READONLY/ });
    sentinel.reply = naming(second);
    await countsAgain(instance);
    t.match(await at(second, 'GET', 'again'), /\d/);
  },
);

t.test('when the primary is unreachable, another sentinel is queried', async (t) => {
  const stale = await startStubSentinel(t, naming({ address: '127.0.0.1:1' }));
  const right = await startStubSentinel(t, naming(second));
  const { instance } = makeInstance(t, [stale, right]);
  await instance.start();
  t.same(await take(instance, [makeHit('a')]), [1]);
  t.match(instance.lastError(), { message: /127\.0\.0\.1:1/ });
});

t.test('a sentinel that does not respond, closes, or replies with garbage is skipped', async (t) => {
  const right = await startStubSentinel(t, naming(first));
  for (const nonsense of ['', 'hang up', '$-1\r\n', '*0\r\n', ':1\r\n', '+OK\r\n', '-IDONTKNOW\r\n']) {
    const odd = await startStubSentinel(t, nonsense);
    const { instance, events } = makeInstance(t, [odd, right], { replyTimeoutMs: 100 });
    await instance.start();
    t.ok(events.includes(`primary ${first.address}`), JSON.stringify(nonsense));
    instance.close();
  }
});

t.test('while no sentinel answers, the last primary is used, which is logged once', async (t) => {
  const [one, other] = [await startStubSentinel(t, naming(first)), await startStubSentinel(t, naming(first))];
  const { instance, events } = makeInstance(t, [one, other]);
  await instance.start();
  one.reply = 'hang up';
  const received = other.accepted();
  await awaitUntil(() => other.accepted() > received, { what: 'a query to the other sentinel', ...patience });
  t.same(events, [`primary ${first.address}`], 'one is enough');
  other.reply = 'hang up';
  const attempts = one.accepted() + 10;
  await awaitUntil(() => one.accepted() > attempts, { what: 'further attempts', ...patience });
  t.same(await take(instance, [makeHit('a')]), [1]);
  t.match(events.at(-1), `no sentinel names the primary of mymaster (`);
  t.equal(events.length, 2);
  other.reply = naming(second);
  await awaitUntil(() => events.length > 3, { what: 'the news', ...patience });
  t.same(events.slice(2), ['sentinels back', `primary ${second.address}`]);
});

t.test('without a primary requests fail, and closing ends a waiting start', async (t) => {
  const sentinel = await startStubSentinel(t, '$-1\r\n');
  const { instance, events } = makeInstance(t, [sentinel]);
  const started = instance.start();
  await awaitUntil(() => events.length > 1, { what: 'attempts', ...patience });
  await t.rejects(take(instance, [makeHit('a')]), { code: 'backend_failure', message: /named the primary/ });
  await t.rejects(peek(instance, [makeHit('a')]), { code: 'backend_failure', message: /named the primary/ });
  t.match(instance.lastError(), { message: /it knows no master of that name/ });
  instance.close(new Error('stopped'));
  await t.rejects(started, { message: 'stopped' });
  instance.close();
});
