import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { startRedisCluster } from '@tollgate/testkit/redis-cluster';
import t, { type Test } from 'tap';
import type { CounterStore } from '../../../../src/stores/counter-store.ts';
import { getSlot } from '../../../../src/stores/redis/cluster/slots.ts';
import { peek, take } from '../../../support/counts.ts';
import { redisFromSettings } from '../../../support/redis-from-settings.ts';
import { makeHit } from '../../counter-store-contract.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);
const { ca, server, client } = certificates;
const starting = Promise.all([
  startRedisCluster({ replicas: 3 }),
  startRedisCluster({
    masters: 2,
    password: 'p@ss:word',
    tls: { certFile: server.certFile, keyFile: server.keyFile, caFile: ca.certFile },
  }),
]);

// While the clusters start, which is waiting for the most part.
t.test('a start without a cluster times out with the reason', async (t) => {
  const says = /within 1500ms .*: no node of the Redis Cluster returned.*ECONNREFUSED/;
  const failsToStart = async (): Promise<boolean> => {
    const { store } = await redisFromSettings(t, {
      KVSTORE_TYPE: 'cluster',
      KVSTORE_URL: '127.0.0.1:1',
      KVSTORE_TIMEOUT: '20s',
      KVSTORE_STARTUP_MAX_ELAPSED_TIME: '1500ms',
    });
    const failure: unknown = await store.start().catch((error: unknown) => error);
    t.match(failure, { message: /within 1500ms/ });
    return says.test(String(failure));
  };
  // A busy machine may need more than one: the connection has to be refused in that time.
  await awaitUntil(failsToStart, { what: 'the reason' });
  // tap ends when no test is left, and the others come after the clusters.
  await starting;
});

const [cluster, guarded] = await starting;
t.teardown(() => Promise.all([cluster.stop(), guarded.stop()]));

const clusterEnv = { KVSTORE_TYPE: 'cluster', KVSTORE_URL: cluster.address, KVSTORE_TIMEOUT: '20s' };

async function started(t: Test, env: Readonly<Record<string, string>> = {}) {
  const made = await redisFromSettings(t, { ...clusterEnv, KVSTORE_STARTUP_MAX_ELAPSED_TIME: '20s', ...env });
  await made.store.start();
  return made;
}

/** A key in a slot that a master had at first. */
function findKey(master: number, prefix = 'key'): string {
  for (let i = 0; ; i += 1) {
    if (cluster.masterOf(getSlot(`${prefix}${i}`)) === master) return `${prefix}${i}`;
  }
}

function counts(store: CounterStore, ...keys: string[]): Promise<boolean> {
  return take(
    store,
    keys.map((key) => makeHit(key)),
  ).then(
    () => true,
    () => false,
  );
}

function countsAgain(store: CounterStore, key: string): Promise<unknown> {
  return awaitUntil(() => counts(store, key), { what: 'counting again', timeoutMs: 20_000 });
}

interface Load {
  running: boolean;
  /** Counts of the first counter, request by request. */
  readonly counts: number[];
  readonly failures: unknown[];
  countsBeforeFailures: number;
}

/** Adds hits continuously, ten requests at once, until it is stopped. */
function startLoad(store: CounterStore, ...keys: string[]) {
  const hits = keys.map((key) => makeHit(key));
  const load: Load = { running: true, counts: [], failures: [], countsBeforeFailures: 0 };
  const workers = Array.from({ length: 10 }, async () => {
    while (load.running) {
      try {
        const [count = 0] = await take(store, hits);
        load.counts.push(count);
        load.countsBeforeFailures += load.failures.length === 0 ? 1 : 0;
      } catch (error) {
        load.failures.push(error);
      }
      await new Promise(setImmediate);
    }
  });
  return {
    load,
    stop: async () => {
      load.running = false;
      await Promise.all(workers);
    },
    moreCounts: (n: number) => {
      const before = load.counts.length;
      return awaitUntil(() => load.counts.length > before + n, { what: 'counts', timeoutMs: 20_000 });
    },
  };
}

/** 1 to n. */
function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i + 1);
}

t.test('password and TLS apply to every node', async (t) => {
  const env = { KVSTORE_URL: guarded.address, KVSTORE_TLS: 'true' };
  const files = {
    KVSTORE_TLS_CACERT: ca.certFile,
    KVSTORE_TLS_CLIENT_CERT: client.certFile,
    KVSTORE_TLS_CLIENT_KEY: client.keyFile,
  };
  const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`);
  const { store } = await started(t, { ...env, ...files, KVSTORE_AUTH: 'default:p@ss:word' });
  t.same(
    new Set(
      await take(
        store,
        keys.map((key) => makeHit(key)),
      ),
    ),
    new Set([1]),
  );
  const first = guarded.masters[0]?.address;
  const byUrl = await started(t, { ...files, KVSTORE_URL: `rediss://:p%40ss%3Aword@${first}` });
  t.same(
    new Set(
      await take(
        byUrl.store,
        keys.map((key) => makeHit(key)),
      ),
    ),
    new Set([2]),
  );

  const rights = '+ping +incrby +expire +get +cluster|slots +asking ~*'.split(' ');
  for (const { command } of guarded.masters) {
    await command('ACL', 'SETUSER', 'limiter', 'on', '>secret', ...rights);
  }
  const limited = await started(t, { ...env, ...files, KVSTORE_AUTH: 'limiter:secret' });
  const slot = getSlot('asked for');
  const move = await guarded.startMove(slot, guarded.masterOf(slot), 1 - guarded.masterOf(slot));
  t.same(await take(limited.store, [makeHit('asked for')]), [1], 'a user needs no more rights than these');
  t.same(await peek(limited.store, [makeHit('asked for')]), [1]);
  await move.finish();

  const refused: readonly (readonly [Record<string, string>, RegExp])[] = [
    [{ ...files, KVSTORE_AUTH: 'not-it' }, /WRONGPASS/],
    [files, /NOAUTH/],
    [{ KVSTORE_AUTH: 'p@ss:word' }, /certificate/],
  ];
  await Promise.all(
    refused.map(async ([more, reason]) => {
      const { store, logLines } = await redisFromSettings(t, {
        ...clusterEnv,
        ...env,
        ...more,
        KVSTORE_STARTUP_MAX_ELAPSED_TIME: '0',
      });
      const stopping = new AbortController();
      const rejected = t.rejects(store.start({ signal: stopping.signal }), { code: 'backend_failure' });
      await awaitUntil(() => reason.test(JSON.stringify(logLines)), { what: String(reason) });
      stopping.abort();
      await rejected;
      t.notMatch(JSON.stringify(logLines), /not-it|p@ss:word/);
    }),
  );
});

t.test('a node that stops responding fails only its counters, within the timeout', async (t) => {
  const { store, stats } = await started(t, {
    KVSTORE_TIMEOUT: '3s',
    KVSTORE_BREAKER_FAILURES: '1',
    // Still open when the next request is made.
    KVSTORE_BREAKER_INTERVAL: '3s',
  });
  const open = stats.gauge('ratelimit.redis_pool.breaker_open');
  const [silent, other] = [findKey(1), findKey(0)];
  await take(store, [makeHit(silent), makeHit(other)]);
  cluster.pauseNode(1);
  t.teardown(() => cluster.resumeNode(1));
  const failed = t.rejects(take(store, [makeHit(silent)]), {
    message: `Redis at ${cluster.masters[1]?.address} did not answer within 3000ms`,
  });
  await countsAgain(store, other);
  await failed;
  t.equal(open.value, 1, 'the circuit breaker of that node');
  await t.rejects(take(store, [makeHit(silent)]), { message: /^the circuit breaker is open/ });
  await t.resolves(take(store, [makeHit(other)]));
  cluster.resumeNode(1);
  await countsAgain(store, silent);
  t.equal(open.value, 0);
});

t.test('a planned failover fails no request and loses no hit', async (t) => {
  const { store } = await started(t);
  const key = findKey(2, 'handed over');
  const { load, stop, moreCounts } = startLoad(store, key, findKey(0, 'beside'));
  await moreCounts(100);
  await cluster.handOver(2);
  await moreCounts(100);
  await stop();
  t.same(load.failures, []);
  t.same(
    load.counts.sort((a, b) => a - b),
    upTo(load.counts.length),
  );
  t.equal(
    await cluster.replicas[2]?.command('GET', key),
    String(load.counts.length),
    'counted at the replica',
  );
  t.ok(Number(await cluster.replicas[2]?.command('TTL', key)) > 0, 'and expires there');
});

t.test('hits that time out while a planned failover pauses writes are not counted', async (t) => {
  const { store } = await started(t, { KVSTORE_TIMEOUT: '300ms' });
  const key = findKey(1, 'paused');
  await awaitUntil(() => take(store, [makeHit(key, 0)]), { what: 'a count' });
  // Failovers pause clients until the replica is in sync.
  await cluster.masters[1]?.command('CLIENT', 'PAUSE', '60000', 'WRITE');
  await t.rejects(take(store, [makeHit(key)]), { code: 'backend_failure', message: /within 300ms/ });
  await cluster.masters[1]?.command('CLIENT', 'UNPAUSE');
  const count = await awaitUntil(() => take(store, [makeHit(key)]), { what: 'a count' });
  t.same(count, [1]);
});

t.test('a master killed under load: requests fail until its replica is promoted', async (t) => {
  const { store, health, logLines, stats } = await started(t);
  const changes: boolean[] = [];
  health.onChange((healthy) => changes.push(healthy));
  const key = findKey(0, 'killed');
  const other = startLoad(store, findKey(1, 'other'));
  const { load, stop, moreCounts } = startLoad(store, key);
  await moreCounts(100);
  await cluster.stopNode(0);
  await awaitUntil(() => load.failures.length > 100, { what: 'failures', timeoutMs: 20_000 });
  const before = load.counts.slice(0, load.countsBeforeFailures);
  t.equal(new Set(before).size, before.length, 'each count once, up to then');
  await cluster.promoteReplica(0);
  await moreCounts(100);
  await other.moreCounts(100);
  await Promise.all([stop(), other.stop()]);
  t.same(other.load.failures, [], 'others never failed');
  t.same(
    other.load.counts.sort((a, b) => a - b),
    upTo(other.load.counts.length),
  );
  t.same(changes, [], 'nor was the service unhealthy: most of it worked');
  const linesWith = (text: string) => logLines.filter((line) => JSON.stringify(line).includes(text));
  const [old = '', now = ''] = [cluster.masters[0]?.address, cluster.replicas[0]?.address];
  t.match(JSON.stringify(linesWith(old)), 'lost the last connection to a node');
  t.match(JSON.stringify(linesWith(now)), 'nodes of the Redis Cluster', 'the log tells who took its place');
  t.ok(logLines.length < 60, `${logLines.length} lines for ${load.failures.length} failures`);
  t.ok(stats.gauge('ratelimit.redis_pool.cx_active').value >= 3);
});

t.test('a master killed without a replica: only its counters fail', async (t) => {
  const { store, health } = await started(t);
  const [lost, other] = [findKey(1, 'lost'), findKey(0, 'kept')];
  await take(store, [makeHit(lost), makeHit(other)]);
  await cluster.replicas[1]?.kill();
  await cluster.stopNode(1);
  const reason = `no connection to Redis at ${cluster.masters[1]?.address}: `;
  await awaitUntil(
    async () => String(await take(store, [makeHit(lost)]).catch((error: unknown) => error)).includes(reason),
    { what: 'a failure that names the node', timeoutMs: 20_000 },
  );
  await t.rejects(take(store, [makeHit(other), makeHit(lost)]), { code: 'backend_failure' }, 'as a whole');
  t.ok(await counts(store, other, findKey(2, 'kept')));
  t.ok(health.isHealthy());

  t.comment('and a start meanwhile');
  const second = await started(t);
  t.ok(await counts(second.store, other));
  t.notOk(await counts(second.store, lost));
});

t.test('with all nodes lost the service is unhealthy', async (t) => {
  const { store, health, stats } = await started(t);
  await Promise.all([...cluster.masters, ...cluster.replicas].map((node) => node.kill()));
  await awaitUntil(() => !health.isHealthy(), { what: 'bad health', timeoutMs: 20_000 });
  t.equal(stats.gauge('ratelimit.redis_pool.cx_active').value, 0);
  await t.rejects(take(store, [makeHit('a')]), { code: 'backend_failure' });
});
