import { awaitUntil } from '@tollgate/testkit/await-until';
import { startRedis } from '@tollgate/testkit/redis';
import { startRedisCluster } from '@tollgate/testkit/redis-cluster';
import t, { type Test } from 'tap';
import { getSlot } from '../../../../src/stores/redis/cluster/slots.ts';
import { peek, take } from '../../../support/counts.ts';
import { redisFromSettings } from '../../../support/redis-from-settings.ts';
import { counterBackendContract, makeHit } from '../../counter-store-contract.ts';

const cluster = await startRedisCluster();
t.teardown(cluster.stop);
t.beforeEach(async () => {
  await onAllNodes('FLUSHALL');
});

const patient = { KVSTORE_TIMEOUT: '20s', KVSTORE_STARTUP_MAX_ELAPSED_TIME: '20s' };

/** The store of the cluster, as settings make it. */
async function started(t: Test, env: Readonly<Record<string, string>> = {}) {
  const made = await redisFromSettings(t, {
    ...patient,
    KVSTORE_TYPE: 'cluster',
    KVSTORE_URL: cluster.address,
    ...env,
  });
  await made.store.start();
  return made;
}

function onAllNodes(...words: string[]) {
  return Promise.all(cluster.masters.map(({ command }) => command(...words)));
}

function onNode(master: number, ...words: string[]) {
  const node = cluster.masters[master];
  if (node === undefined) throw new RangeError(`no master ${master}`);
  return node.command(...words);
}

/** A key that lives on a master, at first. */
function findKey(master: number, prefix = 'key'): string {
  for (let i = 0; ; i += 1) {
    if (cluster.masterOf(getSlot(`${prefix}${i}`)) === master) return `${prefix}${i}`;
  }
}

const abilities = { atomic: false };
counterBackendContract(t, 'redis cluster', async (t) => (await started(t)).store, abilities);
counterBackendContract(
  t,
  'redis cluster with one connection to each node',
  async (t) => (await started(t, { KVSTORE_POOL_SIZE: '1', KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'WAIT' })).store,
  abilities,
);

t.test('slots of keys are those of the server', async (t) => {
  const keys = ['', 'a', 'ä', '{', '{}', '{}x', 'a{b}c', 'a{ü}c', 'a{b', '}{', '€😀', 'k'.repeat(10_000)];
  for (const key of keys) {
    t.equal(getSlot(key), await onNode(0, 'CLUSTER', 'KEYSLOT', key), key.slice(0, 20));
  }
});

t.test('counters are distributed over all nodes, also those of one request', async (t) => {
  const { store } = await started(t);
  const keys = Array.from({ length: 60 }, (_, i) => `key ${i}`);
  t.same(
    await take(
      store,
      keys.map((key, i) => makeHit(key, i + 1)),
    ),
    keys.map((_, i) => i + 1),
  );
  t.same(
    await peek(
      store,
      keys.map((key) => makeHit(key)),
    ),
    keys.map((_, i) => i + 1),
  );
  const sizes = (await onAllNodes('DBSIZE')).map(Number);
  t.ok(
    sizes.every((size) => size > 5),
    sizes.join(),
  );
});

t.test('a counter expires; hits on it that arrive together are one INCRBY', async (t) => {
  const { store } = await started(t);
  const key = findKey(1, 'hot');
  await onNode(1, 'CONFIG', 'RESETSTAT');
  const counts = await Promise.all(Array.from({ length: 50 }, () => take(store, [makeHit(key)])));
  t.same(
    counts.flat(),
    Array.from({ length: 50 }, (_, i) => i + 1),
  );
  t.match(await onNode(1, 'INFO', 'commandstats'), /cmdstat_incrby:calls=1,/);
  const ttl = Number(await onNode(1, 'TTL', key));
  t.ok(ttl > 0 && ttl <= 60, `expires in ${ttl} s`);
});

t.test('a counter that vanished expires after the next hit, also when its slot moved', async (t) => {
  const { store } = await started(t);
  const key = findKey(1, 'vanishing');
  await take(store, [makeHit(key)]);
  await onNode(1, 'FLUSHALL');
  t.same(await take(store, [makeHit(key)]), [1]);
  await awaitUntil(async () => Number(await onNode(1, 'TTL', key)) > 0, { what: 'the expiry' });
  await cluster.moveSlot(getSlot(key), 1, 2);
  await onNode(2, 'DEL', key);
  t.same(await take(store, [makeHit(key)]), [1]);
  await awaitUntil(async () => Number(await onNode(2, 'TTL', key)) > 0, { what: 'the expiry' });
  await cluster.moveSlot(getSlot(key), 2, 1);
});

t.test('a hash tag in a value selects the slot of its counter', async (t) => {
  const { store } = await started(t);
  const keys = ['api_user_{42}_1', 'api_path_/files/{42}_1', 'api_{42}{43}_1'];
  t.same(
    await take(
      store,
      keys.map((key) => makeHit(key)),
    ),
    [1, 1, 1],
  );
  const master = cluster.masterOf(getSlot('42'));
  for (const key of keys) {
    t.equal(await onNode(master, 'GET', key), '1', key);
  }
});

t.test('after a slot moved, its counters continue on the new node (MOVED)', async (t) => {
  const { store, logLines } = await started(t);
  const [key, other] = [findKey(0, 'moved'), findKey(2, 'stays')];
  t.same(await take(store, [makeHit(key, 5), makeHit(other)]), [5, 1]);
  await cluster.moveSlot(getSlot(key), 0, 1);
  t.same(await take(store, [makeHit(key), makeHit(other)]), [6, 2]);
  t.same(await peek(store, [makeHit(key)]), [6]);
  t.equal(await onNode(1, 'GET', key), '6');
  await cluster.moveSlot(getSlot(key), 1, 0);
  t.same(await peek(store, [makeHit(key), makeHit(other)]), [6, 2], 'and back');
  t.notMatch(JSON.stringify(logLines), /failed/);
});

t.test('hits of a token bucket that were coalesced follow their slot one by one', async (t) => {
  const { store } = await started(t);
  const rate = { algorithm: 'token_bucket', limit: 5, burst: 5, periodSeconds: 31_536_000 } as const;
  const key = findKey(0, 'bucket');
  const addAll = async (times: number): Promise<number[]> => {
    const add = () => take(store, [{ ...makeHit(key), rate }, makeHit(`${key} fixed`)]);
    const results = await Promise.all(Array.from({ length: times }, add));
    return results.map(([result = -1]) => Math.max(-1, result)).sort((a, b) => b - a);
  };
  t.same(await addAll(2), [4, 3]);
  await cluster.moveSlot(getSlot(key), 0, 1);
  t.same(await addAll(4), [2, 1, 0, -1]);
  await cluster.moveSlot(getSlot(key), 1, 0);
});

t.test('while a slot moves, each counter is found where it is (ASK)', async (t) => {
  const { store } = await started(t);
  const tag = findKey(1, 'moving');
  const [old, looked, fresh] = [`{${tag}}old`, `{${tag}}looked`, `{${tag}}fresh`].map((key) => makeHit(key));
  if (old === undefined || looked === undefined || fresh === undefined) throw new TypeError('three keys');
  await take(store, [old, looked]);
  const move = await cluster.startMove(getSlot(tag), 1, 2);
  t.same(await take(store, [old, fresh]), [2, 1], 'an old one where it was, a new one where it will be');
  await move.migrateKeys();
  t.same(await take(store, [old, fresh, { ...old, addend: 10 }]), [3, 2, 13]);
  t.same(await peek(store, [looked, fresh]), [1, 2]);
  await move.finish();
  t.ok(Number(await onNode(2, 'TTL', fresh.key)) > 0, 'what was made there expires');
  t.same(await take(store, [old, looked, fresh]), [14, 2, 3]);
  await cluster.moveSlot(getSlot(tag), 2, 1);
});

t.test('slots that move under load fail no request and lose no hit', async (t) => {
  const { store } = await started(t);
  const [moving, staying] = [findKey(0, 'busy'), findKey(0, 'calm')];
  const load: { running: boolean } = { running: true };
  const seen: number[] = [];
  const workers = Array.from({ length: 10 }, async () => {
    while (load.running) {
      const [count = 0] = await take(store, [makeHit(moving), makeHit(staying)]);
      seen.push(count);
      await new Promise(setImmediate);
    }
  });
  for (let i = 0; i < 10; i += 1) {
    const before = seen.length;
    await cluster.moveSlot(getSlot(moving), i % 2, (i + 1) % 2);
    await awaitUntil(() => seen.length > before + 20, { what: 'load', timeoutMs: 20_000 });
  }
  load.running = false;
  await Promise.all(workers);
  t.same(
    seen.sort((a, b) => a - b),
    Array.from({ length: seen.length }, (_, i) => i + 1),
  );
  t.same(await peek(store, [makeHit(moving), makeHit(staying)]), [seen.length, seen.length]);
  t.ok(Number(await onNode(0, 'TTL', moving)) > 0, 'and it expires');
});

t.test('CLUSTERDOWN fails only requests of its slot', async (t) => {
  const { store } = await started(t);
  const [orphan, other] = [findKey(0, 'orphan'), findKey(1, 'other')];
  await onNode(0, 'CLUSTER', 'DELSLOTS', String(getSlot(orphan)));
  await t.rejects(take(store, [makeHit(orphan), makeHit(other)]), {
    code: 'backend_failure',
    message:
      /^(the Redis Cluster is down, .* says: CLUSTERDOWN|no node of the Redis Cluster serves slot \d+)/,
  });
  t.same(await take(store, [makeHit(findKey(1, 'next'))]), [1]);
  await onNode(0, 'CLUSTER', 'ADDSLOTS', String(getSlot(orphan)));
});

t.test('one node is enough to discover the others, and unreachable ones are skipped', async (t) => {
  const { store, stats } = await started(t, {
    KVSTORE_URL: `127.0.0.1:1,${cluster.masters[2]?.address}`,
  });
  t.same(
    await take(
      store,
      [0, 1, 2].map((master) => makeHit(findKey(master))),
    ),
    [1, 1, 1],
  );
  t.ok(stats.gauge('ratelimit.redis_pool.cx_active').value >= 3, 'connections to all of them are counted');
});

t.test('counters of seconds may be on a single Redis beside a cluster', async (t) => {
  const single = await startRedis();
  t.teardown(single.stop);
  const { store, stats } = await started(t, {
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_TYPE: 'single',
    KVSTORE_PERSECOND_URL: single.address,
    KVSTORE_PERSECOND_TIMEOUT: '20s',
  });
  const key = findKey(1);
  t.same(await take(store, [{ ...makeHit(key), unit: 'second' }, makeHit(key, 5)]), [1, 5]);
  t.same(await peek(store, [{ ...makeHit(key), unit: 'second' }, makeHit(key)]), [1, 5]);
  t.equal(await onNode(1, 'GET', key), '5');
  t.ok(stats.gauge('ratelimit.redis_per_second_pool.cx_active').value >= 1);
});

t.test('a start without a cluster fails with the reason, and can be aborted', async (t) => {
  const single = await startRedis();
  t.teardown(single.stop);
  const cases = [
    [single.address, /cluster support disabled/],
    ['127.0.0.1:1', /ECONNREFUSED/],
  ] as const;
  for (const [url, reason] of cases) {
    const { store, logLines } = await redisFromSettings(t, {
      KVSTORE_TYPE: 'cluster',
      KVSTORE_URL: url,
      KVSTORE_TIMEOUT: '20s',
      KVSTORE_STARTUP_MAX_ELAPSED_TIME: '0',
    });
    const stopping = new AbortController();
    const rejected = t.rejects(store.start({ signal: stopping.signal }), {
      message: 'stopped while connecting to Redis',
    });
    await awaitUntil(() => reason.test(JSON.stringify(logLines)), { what: String(reason) });
    t.match(JSON.stringify(logLines), 'no node of the Redis Cluster returned its slots');
    stopping.abort();
    await rejected;
  }
});
