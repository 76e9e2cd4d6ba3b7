import { awaitUntil } from '@tollgate/testkit/await-until';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { parseRedisAddress } from '../../../src/config/redis-target.ts';
import { StatsRegistry } from '../../../src/metrics/registry.ts';
import type { AllOrNone, ConditionalHit } from '../../../src/stores/all-or-none.ts';
import { RedisConnection } from '../../../src/stores/redis/connection.ts';
import {
  PooledInstance,
  type PooledInstanceOptions,
  type RedisInstance,
} from '../../../src/stores/redis/instance.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { PoolMetrics } from '../../../src/stores/redis/telemetry.ts';
import { take, toCounts } from '../../support/counts.ts';
import { startInvalidServer } from '../../support/invalid-server.ts';
import { counterBackendContract, makeHit } from '../counter-store-contract.ts';

const server = await startRedis({ unixSocket: true });
t.teardown(server.stop);
t.beforeEach(async () => {
  await admin('FLUSHALL');
});

function admin(...words: string[]) {
  return redisCommand(server, ...words);
}

function instance(url: string, options: Partial<PooledInstanceOptions> = {}): RedisInstance {
  const parsed = parseRedisAddress(url, 'tcp');
  if (!parsed.ok) {
    throw new TypeError(`bad address in a test: ${url}`);
  }
  const timeoutMs = options.timeoutMs ?? 10_000;
  return new PooledInstance(
    {
      open: () => new RedisConnection({ address: parsed.address }),
      startDelayMs: () => 10,
      reconnectDelayMs: () => 10,
      metrics: new PoolMetrics('redis', new StatsRegistry()),
    },
    { size: 10, onEmpty: 'create', onEmptyWaitMs: 1_000, windowMs: 0, timeoutMs, ...options },
  );
}

function takeWhole({ takeAllOrNone }: RedisStore, hits: readonly ConditionalHit[]): Promise<AllOrNone> {
  if (takeAllOrNone === undefined) throw new TypeError('one Redis decides requests together');
  return takeAllOrNone(hits);
}

async function started(t: Test, main: RedisInstance, perSecond?: RedisInstance) {
  const store = new RedisStore({ main, perSecond, startTimeoutMs: 20_000 });
  t.teardown(() => store.close());
  await store.start();
  return store;
}

counterBackendContract(t, 'redis over tcp', (t) => started(t, instance(server.address)));
counterBackendContract(t, 'redis over a unix socket', (t) => started(t, instance(server.socketPath)));
counterBackendContract(t, 'redis with one connection', (t) =>
  started(t, instance(server.address, { size: 1, onEmpty: 'wait' })),
);
counterBackendContract(t, 'redis with a pipeline window', (t) =>
  started(t, instance(server.address, { windowMs: 5 })),
);
counterBackendContract(
  t,
  'redis with a second instance',
  (t) => started(t, instance(server.address), instance(`redis://${server.address}?db=1`)),
  { atomic: false },
);

t.test('Redis holds the counter as a number that expires', async (t) => {
  const store = await started(t, instance(server.address));
  await take(store, [{ ...makeHit('domain_key_value_1200', 3), ttlSeconds: 75 }]);
  t.equal(await admin('GET', 'domain_key_value_1200'), '3');
  const ttl = Number(await admin('TTL', 'domain_key_value_1200'));
  t.ok(ttl > 70 && ttl <= 75, `expires in ${ttl} s`);
});

t.test('a refund keeps the expiry of a counter, and creates none', async (t) => {
  const store = await started(t, instance(server.address));
  await take(store, [{ ...makeHit('refunded', 3), ttlSeconds: 75 }]);
  await take(store, [{ ...makeHit('refunded', -9), ttlSeconds: 3000 }, makeHit('never hit', -1)]);
  t.equal(await admin('GET', 'refunded'), '0');
  const ttl = Number(await admin('TTL', 'refunded'));
  t.ok(ttl > 60 && ttl <= 75, `expires in ${ttl} s`);
  t.equal(Number(await admin('EXISTS', 'never hit')), 0);
});

t.test('concurrent hits are one INCRBY and one EXPIRE for each key', async (t) => {
  const store = await started(t, instance(server.address));
  await admin('CONFIG', 'RESETSTAT');
  await Promise.all(Array.from({ length: 50 }, () => take(store, [makeHit('hot')])));
  const stats = String(await admin('INFO', 'commandstats'));
  t.match(stats, /cmdstat_incrby:calls=1,/);
  t.match(stats, /cmdstat_expire:calls=1,/);
  t.equal(await admin('GET', 'hot'), '50');
});

t.test('equal hits that arrive together are one script call, and each gets its own result', async (t) => {
  const store = await started(t, instance(server.address));
  const rate = { algorithm: 'token_bucket', limit: 30, burst: 30, periodSeconds: 31_536_000 } as const;
  await admin('CONFIG', 'RESETSTAT');
  const results = await Promise.all(
    Array.from({ length: 40 }, () =>
      take(store, [
        { ...makeHit('hot'), rate },
        { ...makeHit('cold', 2), rate },
      ]),
    ),
  );
  const hot = results.map(([result = -1]) => result);
  t.same(
    hot.slice(0, 30),
    Array.from({ length: 30 }, (_, i) => 29 - i),
  );
  t.ok(hot.slice(30).every((result) => result < -1));
  t.same(
    results.slice(0, 15).map(([, result]) => result),
    Array.from({ length: 15 }, (_, i) => 28 - 2 * i),
  );
  t.match(String(await admin('INFO', 'commandstats')), /cmdstat_eval:calls=1,/);
});

t.test('after SCRIPT FLUSH the scripts are sent again, and no request fails', async (t) => {
  const store = await started(t, instance(server.address, { size: 1, onEmpty: 'wait' }));
  const rate = { algorithm: 'sliding_window', limit: 10, burst: 10, periodSeconds: 31_536_000 } as const;
  const request = [makeHit('window', 4), makeHit('window', -1), { ...makeHit('sliding'), rate }];
  const whole = [{ ...makeHit('whole'), capacity: 5, refuses: 'alone' as const }];
  t.same(await take(store, request), [4, 3, 9]);
  t.same(toCounts(whole, await takeWhole(store, whole)), { refused: false, counts: [1] });
  const ttl = Number(await admin('TTL', 'whole'));
  t.ok(ttl > 0 && ttl <= 60, `expires after ${ttl} s`);
  await admin('SCRIPT', 'FLUSH');
  t.same(toCounts(whole, await takeWhole(store, whole)), { refused: false, counts: [2] });
  await admin('SCRIPT', 'FLUSH');
  t.same(await Promise.all([take(store, request), take(store, [makeHit('other')])]), [[7, 6, 8], [1]]);
  await admin('CONFIG', 'RESETSTAT');
  t.same(await take(store, request), [10, 9, 7]);
  t.notMatch(String(await admin('INFO', 'commandstats')), /cmdstat_eval:/);
});

t.test('with a second instance, only counters of seconds are in it', async (t) => {
  const store = await started(t, instance(server.address), instance(`redis://${server.address}?db=1`));
  const perSecond = { ...makeHit('second', 2), unit: 'second' } as const;
  t.same(await take(store, [perSecond, makeHit('minute', 3), perSecond]), [2, 3, 4]);
  t.same(await admin('KEYS', '*'), ['minute']);
  const other = new RedisConnection({
    address: { kind: 'tcp', host: server.host, port: server.port, db: 1 },
  });
  t.teardown(() => other.close());
  await other.connect();
  t.same(await other.call('KEYS', '*'), ['second']);
});

t.test('a request fails when one of its counters is not a number', async (t) => {
  const store = await started(t, instance(server.address));
  await admin('SET', 'bad', 'text');
  await t.rejects(take(store, [makeHit('good'), makeHit('bad')]), {
    code: 'backend_failure',
    message: /not an integer/,
  });
  const hits = ['good', 'bad'].map((key) => ({ ...makeHit(key), capacity: 9, refuses: 'alone' as const }));
  await t.rejects(takeWhole(store, hits), { code: 'backend_failure', message: /not an integer/ });
  t.same(await take(store, [makeHit('good')]), [2], 'others are not held up');
});

t.test(
  'a server that does not answer in time fails the request, and the next one gets a fresh connection',
  async (t) => {
    const store = await started(t, instance(server.address, { timeoutMs: 150 }));
    await admin('CLIENT', 'PAUSE', '60000', 'WRITE');
    await t.rejects(take(store, [makeHit('a')]), {
      code: 'backend_failure',
      message: /did not answer within 150ms/,
    });
    await admin('CLIENT', 'UNPAUSE');
    await eventually(t, () => take(store, [makeHit('b')]));
  },
);

t.test('a lost server fails requests at once, until it is reachable again', async (t) => {
  const own = await startRedis();
  const store = await started(t, instance(own.address));
  t.same(await take(store, [makeHit('a')]), [1]);
  await own.stop();
  await t.rejects(take(store, [makeHit('a')]), { code: 'backend_failure' });
  await t.rejects(take(store, [makeHit('a')]), {
    code: 'backend_failure',
    message: /no connection to Redis/,
  });
  const again = await startRedis({ port: own.port });
  t.teardown(again.stop);
  await eventually(t, () => take(store, [makeHit('a')]));
});

t.test('with all connections busy, `error` fails after its wait', async (t) => {
  const store = await started(t, instance(server.address, { size: 1, onEmpty: 'error', onEmptyWaitMs: 20 }));
  await admin('CLIENT', 'PAUSE', '60000', 'WRITE');
  const first = take(store, [makeHit('a')]);
  await nextTick();
  await t.rejects(take(store, [makeHit('b')]), { message: 'all 1 connections to Redis are busy' });
  await admin('CLIENT', 'UNPAUSE');
  t.same(await first, [1]);
});

t.test('with all connections busy, `wait` waits and `create` opens one more', async (t) => {
  for (const onEmpty of ['wait', 'create'] as const) {
    await admin('FLUSHALL');
    const store = await started(t, instance(server.address, { size: 1, onEmpty, onEmptyWaitMs: 5 }));
    await admin('CLIENT', 'PAUSE', '100', 'WRITE');
    const first = take(store, [makeHit('a')]);
    await nextTick();
    t.same(await Promise.all([first, take(store, [makeHit('a')])]), [[1], [2]], onEmpty);
  }
});

t.test('a start without a server times out', async (t) => {
  const unreachable = instance('127.0.0.1:1');
  const store = new RedisStore({ main: unreachable, startTimeoutMs: 50 });
  t.teardown(() => store.close());
  await t.rejects(store.start(), { message: /KVSTORE_STARTUP_MAX_ELAPSED_TIME/ });
});

t.test('a start that times out during its first attempt says so', async (t) => {
  const silent = await startInvalidServer(t, () => undefined);
  const store = new RedisStore({
    main: instance(silent.address, { timeoutMs: 60_000 }),
    startTimeoutMs: 50,
  });
  t.teardown(() => store.close());
  await t.rejects(store.start(), { message: /ELAPSED_TIME\): the first attempt is still pending/ });
});

/** Lets what is scheduled for the end of this tick, such as a flush, happen. */
function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}

async function eventually(t: Test, attempt: () => Promise<unknown>): Promise<void> {
  await t.resolves(
    awaitUntil(
      () =>
        attempt().then(
          () => true,
          () => false,
        ),
      { everyMs: 20, what: 'counting again' },
    ),
  );
}
