import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startMemcached } from '@tollgate/testkit/memcached';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import fc from 'fast-check';
import t from 'tap';
import type { CounterStore, Hit } from '../../src/stores/counter-store.ts';
import { Leases } from '../../src/stores/leases.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { descriptors } from '../support/counter-api.ts';
import { peek, take } from '../support/counts.ts';
import { redisFromSettings } from '../support/redis-from-settings.ts';
import { startApp } from '../support/start-app.ts';
import { makeHit } from './counter-store-contract.ts';

function leasedHit(addend: number, { limit = 100, hits = 10, key = 'hot' } = {}): Hit {
  return { ...makeHit(key, addend), capacity: limit, lease: { hits, limit } };
}

const memory = () => new MemoryStore({ nowMs: () => 1_000_000, maxCounters: 10_000 });

/** Records the addends that reach the store. */
function recorded(store: CounterStore) {
  const added: number[] = [];
  const countHits = (hits: readonly Hit[]) => {
    added.push(...hits.map(({ addend }) => addend));
    return store.take(hits);
  };
  return { added, store: { take: countHits, peek: (hits: readonly Hit[]) => store.peek(hits) } };
}

async function addTo(leases: Leases, ...args: Parameters<typeof leasedHit>): Promise<number> {
  const [count = Number.NaN] = await take(leases, [leasedHit(...args)]);
  return count;
}

const addends = fc.oneof({ weight: 20, arbitrary: fc.nat({ max: 5 }) }, fc.nat({ max: 500 }));
const bursts = fc.array(fc.array(addends, { minLength: 1, maxLength: 8 }), { maxLength: 60 });

t.test('a single replica counts as without a lease, request by request', async (t) => {
  const lease = fc.record({ limit: fc.integer({ min: 4, max: 200 }), hits: fc.integer({ min: 2, max: 50 }) });
  let calls = 0;
  let requests = 0;
  await fc.assert(
    fc.asyncProperty(bursts, lease, async (all, options) => {
      const { added, store } = recorded(memory());
      const leases = new Leases(store);
      const plain = memory();
      for (const burst of all) {
        const counts = await Promise.all(burst.map((addend) => addTo(leases, addend, options)));
        const expected = await take(
          plain,
          burst.map((addend) => makeHit('hot', addend)),
        );
        if (JSON.stringify(counts) !== JSON.stringify(expected)) return false;
        requests += burst.length;
      }
      calls += added.length;
      return true;
    }),
    { numRuns: 300 },
  );
  t.ok(calls < requests / 4, `${calls} calls of the store for ${requests} requests`);
});

const redis = await startRedis();
t.teardown(redis.stop);

async function startReplicas(t: Parameters<typeof redisFromSettings>[0]): Promise<Leases[]> {
  const start = async () => {
    const { store } = await redisFromSettings(t, { REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: redis.address });
    await store.start();
    return new Leases(store);
  };
  return Promise.all([start(), start(), start(), start()]);
}

async function countCommands(): Promise<number> {
  const stats = String(await redisCommand(redis, 'INFO', 'commandstats'));
  return Number(/cmdstat_incrby:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

t.test('four replicas on one key allow exactly the limit', async (t) => {
  const replicas = await startReplicas(t);
  const limit = 2_000;
  const hits = 100;
  const before = await countCommands();
  let runs = 0;
  // Which replica gets how many concurrent requests.
  const order = fc.noShrink(
    fc.array(fc.tuple(fc.nat({ max: 3 }), fc.integer({ min: 1, max: 12 })), {
      minLength: 600,
      maxLength: 600,
    }),
  );
  await fc.assert(
    fc.asyncProperty(order, async (steps) => {
      runs += 1;
      const key = `run-${runs}`;
      let allowed = 0;
      let inFlight = 0;
      let allowedAtFirstRefusal: number | undefined;
      const send = async (replica: number) => {
        inFlight += 1;
        const [result] = (await replicas[replica]?.take([leasedHit(1, { limit, hits, key })])) ?? [];
        inFlight -= 1;
        if (result?.allowed === true) allowed += 1;
        // Requests in flight may have been allowed before.
        else allowedAtFirstRefusal ??= allowed + inFlight;
      };
      const pending: Promise<void>[] = [];
      for (const [replica, requests] of steps) {
        for (let i = 0; i < requests; i += 1) pending.push(send(replica));
        // Some requests of several replicas are on their way at once.
        if (pending.length > 30) await Promise.all(pending.splice(0));
      }
      for (let i = 0; i < hits; i += 1) pending.push(...[0, 1, 2, 3].map(send));
      await Promise.all(pending);
      const early = limit - (allowedAtFirstRefusal ?? 0);
      return allowed === limit && early <= 3 * hits;
    }),
    { numRuns: 12 },
  );
  const commands = ((await countCommands()) - before) / runs;
  t.ok(commands < limit / 10, `${commands} commands for a limit of ${limit}`);
});

t.test(
  'with refunds, failures and replies in any order, replicas never allow more than the limit',
  async (t) => {
    const limit = 40;
    const step = fc.tuple(fc.nat({ max: 2 }), fc.integer({ min: -4, max: 6 }));
    const bursts = fc.array(fc.array(step, { maxLength: 12 }), { minLength: 10, maxLength: 40 });
    const failures = fc.uniqueArray(fc.nat({ max: 60 }));
    const seen = { refused: 0, refunds: 0, failed: 0 };
    await fc.assert(
      fc.asyncProperty(bursts, failures, fc.scheduler(), async (all, failing, scheduler) => {
        const store = memory();
        let calls = 0;
        const countHits = scheduler.scheduleFunction(async (hits: readonly Hit[]) => {
          const counts = await store.take(hits);
          calls += 1;
          if (failing.includes(calls)) throw new Error('no reply in time');
          return counts;
        });
        const leases = () => new Leases({ take: countHits, peek: (hits) => store.peek(hits) });
        const replicas = [leases(), leases(), leases()];
        let allowed = 0;
        const send = async (replica: Leases | undefined, addend: number) => {
          const results = await replica?.take([leasedHit(addend, { limit })]).catch(() => undefined);
          const [result] = results ?? [];
          if (result === undefined) seen.failed += 1;
          else if (!result.allowed) seen.refused += 1;
          else if (addend > 0) allowed += addend;
        };
        for (const burst of all) {
          const sent: Promise<void>[] = [];
          for (const [index, addend] of burst) {
            // Any replica takes back what any replica allowed.
            if (addend < -allowed) continue;
            if (addend < 0) {
              allowed += addend;
              seen.refunds += 1;
            }
            sent.push(send(replicas[index], addend));
          }
          await scheduler.waitFor(Promise.all(sent));
          if (allowed > limit) return false;
        }
        await scheduler.waitIdle();
        return true;
      }),
      { numRuns: 300 },
    );
    for (const count of Object.values(seen)) t.ok(count > 100, JSON.stringify(seen));
  },
);

t.test('a refund returns to the lease, and to the store when it is more than was allowed', async (t) => {
  const { added, store } = recorded(memory());
  const leases = new Leases(store);
  t.equal(await addTo(leases, -5), 0, 'nothing was counted');
  t.equal(await addTo(leases, 3), 3);
  t.equal(await addTo(leases, -3), 0);
  t.equal(await addTo(leases, 3), 3);
  await addTo(leases, -3);
  await addTo(leases, -3);
  t.same(added, [-5, 3, -3]);
});

t.test('a reset of the counter drops what is reserved', async (t) => {
  const { added, store } = recorded(memory());
  const leases = new Leases(store);
  for (let i = 0; i < 10; i += 1) await addTo(leases, 1);
  t.equal(await addTo(leases, -Number.MAX_SAFE_INTEGER), 0);
  t.equal(await addTo(leases, 1), 1);
  t.same(added.slice(-2), [-Number.MAX_SAFE_INTEGER, 10]);
  t.equal(await addTo(leases, 99), 100);
  t.equal(await addTo(leases, 1), 101);
});

t.test('hits beyond the limit fill the counter, and are not sent to overflow it', async (t) => {
  const { added, store } = recorded(memory());
  const leases = new Leases(store);
  t.same(await Promise.all([addTo(leases, 60), addTo(leases, 2 ** 63), addTo(leases, 1)]), [
    60,
    2 ** 63,
    2 ** 63,
  ]);
  t.same(added, [101]);
});

t.test('a replica reserves no more than it used, so a rare key reserves nothing', async (t) => {
  const { added, store } = recorded(memory());
  const leases = new Leases(store);
  for (let i = 0; i < 40; i += 1) await addTo(leases, 1);
  t.same(added, [1, 1, 2, 4, 8, 10, 10, 10]);
});

t.test('requests wait for the lease that is being reserved, and share the next one', async (t) => {
  const { added, store } = recorded(memory());
  const leases = new Leases(store);
  const first = addTo(leases, 1);
  await Promise.resolve();
  const others = [addTo(leases, 2), addTo(leases, 3), addTo(leases, 0)];
  t.same(await Promise.all([first, ...others]), [1, 3, 6, 6]);
  t.same(added, [1, 5]);
});

t.test('the store is called for one lease at a time', async (t) => {
  const store = memory();
  let pending = 0;
  const seen: number[] = [];
  const leases = new Leases({
    async take(hits) {
      pending += 1;
      seen.push(pending);
      const results = await store.take(hits);
      pending -= 1;
      return results;
    },
    peek: (hits) => store.peek(hits),
  });
  const sendTwenty = async () => {
    for (let i = 0; i < 20; i += 1) await addTo(leases, 3);
  };
  await Promise.all([sendTwenty(), sendTwenty(), sendTwenty()]);
  t.equal(Math.max(...seen), 1);
});

t.test('hits without a lease are sent beside those with one, and counts keep their order', async (t) => {
  const leases = new Leases(memory());
  const both = () => take(leases, [makeHit('a', 3), leasedHit(2), makeHit('b'), leasedHit(1)]);
  t.same(await both(), [3, 2, 1, 3]);
  t.same(await both(), [6, 5, 2, 6]);
  t.same(await peek(leases, [makeHit('a'), leasedHit(1), makeHit('b')]), [6, 6, 2]);
});

t.test('a failure of the store fails the requests that wait, and what is reserved remains', async (t) => {
  const memoryStore = memory();
  const store = { take: memoryStore.take.bind(memoryStore), peek: memoryStore.peek.bind(memoryStore) };
  const leases = new Leases(store);
  await addTo(leases, 6);
  await addTo(leases, 1);
  const { take: takeHits } = store;
  store.take = () => Promise.reject(new Error('down'));
  for (let i = 0; i < 5; i += 1) t.equal(await addTo(leases, 1), 8 + i);
  const results = await Promise.allSettled([addTo(leases, 1), addTo(leases, 2), addTo(leases, 0)]);
  t.same(
    results.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  );
  store.take = takeHits;
  t.equal(await addTo(leases, 1), 13);
});

t.test('at most 100,000 requests wait, the others fail at once', async (t) => {
  const store = memory();
  const unblocked = Promise.withResolvers<void>();
  const leases = new Leases({
    take: (hits) => unblocked.promise.then(() => store.take(hits)),
    peek: (hits) => store.peek(hits),
  });
  const waiting = [0, 1].map((key) =>
    take(
      leases,
      Array.from({ length: 50_000 }, () => leasedHit(1, { key: `${key}` })),
    ),
  );
  await t.rejects(addTo(leases, 1), { code: 'backend_failure', message: /too many requests are waiting/ });
  unblocked.resolve();
  await Promise.all(waiting);
  t.equal(await addTo(leases, 1), 1);
});

t.test('another limit in the middle of a window applies at once', async (t) => {
  const leases = new Leases(memory());
  const allowedWith = async (limit: number) => {
    let allowed = 0;
    for (let i = 0; i < 100; i += 1) allowed += (await addTo(leases, 1, { limit })) <= limit ? 1 : 0;
    return allowed;
  };
  for (let i = 0; i < 32; i += 1) await addTo(leases, 1);
  t.equal(await allowedWith(30), 0, 'although hits are reserved within the old limit');
  const more = await allowedWith(60);
  t.ok(more <= 28 && more >= 18, `${more} more, without the reserved ones`);
});

t.test('a counter that was evicted or forgotten is counted on in the store', async (t) => {
  const store = memory();
  const leases = new Leases(store);
  for (let i = 0; i < 8; i += 1) await addTo(leases, 1);
  t.equal(await addTo(leases, 1), 9);
  for (let i = 0; i < 100; i += 1) await addTo(leases, 1, { key: `${i}`.padEnd(1024 * 1024) });
  t.equal(await addTo(leases, 1), 17, 'of 16 that were reserved, the rest is lost');
  leases.forget(['hot']);
  t.equal(await addTo(leases, 1), 18);
});

const memcached = await startMemcached();
t.teardown(memcached.stop);

for (const [store, env] of Object.entries({
  redis: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_SOCKET_TYPE: 'tcp' },
  memcached: { BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: memcached.address, MCACHE_TIMEOUT: '20s' },
})) {
  t.test(`${store}: two services share a limit with leases, and a raised one after a reload`, async (t) => {
    const rules = (limit: number) =>
      `{ domain: d, descriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: ${limit}, lease: 5% } }] }`;
    const start = () => startApp(t, { rules: { 'd.yaml': rules(200) }, env, nowMs: () => 1.8e12 });
    const services = [await start(), await start()];
    const ask = async ({ ports }: (typeof services)[number]) => {
      const body = JSON.stringify({ domain: 'd', descriptors: descriptors('k=v') });
      const response = await fetch(`http://127.0.0.1:${ports.http}/json`, { method: 'POST', body });
      const { overallCode, statuses } = (await response.json()) as {
        overallCode: string;
        statuses: { currentLimit: { requestsPerUnit: number } }[];
      };
      return { allowed: overallCode === 'OK', limit: statuses[0]?.currentLimit.requestsPerUnit };
    };
    const countAllowed = async () => {
      let allowed = 0;
      for (let i = 0; i < 120; i += 1) {
        const answers = await Promise.all(services.flatMap((service) => [ask(service), ask(service)]));
        allowed += answers.filter((answer) => answer.allowed).length;
      }
      return allowed;
    };
    const before = await countCommands();
    t.equal(await countAllowed(), 200);
    const commands = (await countCommands()) - before;
    if (store === 'redis') t.ok(commands > 0 && commands < 60, `${commands} commands`);

    for (const service of services) {
      writeFileSync(join(service.rulesFolder, 'd.yaml'), rules(300));
      await awaitUntil(async () => (await ask(service)).limit === 300, { what: 'the new limit' });
    }
    const more = await countAllowed();
    // Each service asked at least once for the new limit.
    t.ok(more <= 98 && more >= 60, `${more} more`);
  });
}
