import t from 'tap';
import { MemoryStore } from '../../../src/stores/memory/memory-store.ts';
import { peek, take } from '../../support/counts.ts';
import { counterBackendContract, makeHit } from '../counter-store-contract.ts';

counterBackendContract(
  t,
  'memory',
  async () => new MemoryStore({ nowMs: () => 1_000_000, maxCounters: 1_000 }),
);

t.test('a counter expires with its window', async (t) => {
  let now = 1_000;
  const store = new MemoryStore({ nowMs: () => now * 1000, maxCounters: 10 });
  await take(store, [makeHit('a', 3)]);
  now = 1_039;
  t.same(await take(store, [makeHit('a', 0)]), [3]);
  now = 1_040;
  t.same(await peek(store, [makeHit('a')]), [0]);
  t.same(await take(store, [makeHit('b')]), [1]);
  t.equal(store.size, 1, 'the old counter was evicted');
  t.equal(store.evicted, 0);
});

t.test('a live counter survives a flood of other keys, and memory stays bounded', async (t) => {
  const store = new MemoryStore({ nowMs: () => 1_000_000, maxCounters: 1_000 });
  await take(store, [makeHit('live', 50)]);
  for (let i = 0; i < 20_000; i += 1) {
    await take(store, [makeHit(`flood-${i}`)]);
  }
  t.same(await take(store, [makeHit('live')]), [51]);
  t.equal(store.size, 1_000);
  t.equal(store.evicted, 19_001);
});

t.test('many live counters survive a flood of other keys', async (t) => {
  const store = new MemoryStore({ nowMs: () => 1_000_000, maxCounters: 1_000 });
  const live = Array.from({ length: 100 }, (_, i) => makeHit(`live-${i}`, 20));
  await take(store, live);
  for (let i = 0; i < 20_000; i += 1) {
    await take(store, [makeHit(`flood-${i}`)]);
  }
  t.same(
    await peek(store, live),
    live.map(() => 20),
  );
});

t.test('counters that expire soonest are evicted first', async (t) => {
  const store = new MemoryStore({ nowMs: () => 1_000_000, maxCounters: 2 });
  const day = { ...makeHit('day'), unit: 'day', secondsLeft: 80_000 } as const;
  const second = { ...makeHit('second', 9), unit: 'second', secondsLeft: 1 } as const;
  await take(store, [day, second, makeHit('minute')]);
  t.same(await peek(store, [day, second, makeHit('minute')]), [1, 0, 1]);
});

t.test('expired counters of a large window are removed gradually and never read', async (t) => {
  let now = 1_000;
  const store = new MemoryStore({ nowMs: () => now * 1000, maxCounters: 10_000 });
  await take(
    store,
    Array.from({ length: 5_000 }, (_, i) => makeHit(`old-${i}`, 7)),
  );
  now = 1_040;
  t.same(await take(store, [makeHit('old-4999')]), [1], 'the same name starts at 0');
  t.ok(store.size > 4_900, 'one hit removes only a few');
  for (let i = 0; i < 2_000; i += 1) {
    await take(store, [makeHit('new')]);
  }
  t.equal(store.size, 2);
  t.equal(store.evicted, 0);
});

const day = 86_400;
const rates = {
  token_bucket: { algorithm: 'token_bucket', limit: 3, burst: 3, periodSeconds: day },
  sliding_window: { algorithm: 'sliding_window', limit: 3, burst: 3, periodSeconds: day },
  concurrency: { algorithm: 'concurrency', limit: 3, burst: 3, periodSeconds: day },
} as const;

for (const rate of Object.values(rates)) {
  t.test(`${rate.algorithm}: a flood of other keys resets no limit that is used up`, async (t) => {
    let nowMs = 20 * day * 1000;
    const store = new MemoryStore({ nowMs: () => nowMs, maxCounters: 1_000 });
    const hit = (key: string, addend = 1) => ({ ...makeHit(key, addend), rate });
    const used = Array.from({ length: 100 }, (_, i) => hit(`used ${i}`, 3));
    await take(store, used);
    for (let i = 0; i < 5_000; i += 1) {
      await take(store, [hit(`flood ${i}`)]);
      if (i % 100 === 0) nowMs += 1_000;
    }
    const left = await take(
      store,
      used.map((one) => ({ ...one, addend: 1 })),
    );
    t.ok(
      left.every((count) => count < 0),
      'all are still refused',
    );
    t.equal(store.size, 1_000);
    t.equal(store.evicted, 4_100);

    nowMs += 3 * day * 1000;
    for (let i = 0; i < 250; i += 1) await take(store, [makeHit('later')]);
    t.equal(store.size, 1, 'states expire');
    t.equal(store.evicted, 4_100);
  });
}

t.test('a state that equals a new one is not kept', async (t) => {
  let nowMs = 20 * day * 1000;
  const store = new MemoryStore({ nowMs: () => nowMs, maxCounters: 10 });
  for (const [key, rate] of Object.entries(rates)) {
    if (key === 'sliding_window') continue;
    await take(store, [{ ...makeHit(key, 3), rate }]);
    t.equal(store.size, 1);
    await take(store, [{ ...makeHit(key, -3), rate }]);
    t.equal(store.size, 0, `${key} after a refund`);
  }
  const rate = rates.token_bucket;
  await take(store, [{ ...makeHit('a'), rate }]);
  nowMs += (day * 1000) / 3 + 1_000;
  await take(store, [makeHit('b')]);
  t.equal(store.size, 2, 'an expiry is late by at most one part of 64');
  nowMs += (day * 1000) / 3 / 64;
  await take(store, [makeHit('c'), { ...makeHit('z', -1), rate: { ...rate, limit: 0, burst: 5 } }]);
  t.equal(store.size, 1, 'expired');
});

t.test('states are deleted by prefix', async (t) => {
  const store = new MemoryStore({ nowMs: () => 1_000_000, maxCounters: 10 });
  await take(
    store,
    Object.entries(rates).map(([key, rate]) => ({ ...makeHit(`a ${key}`, 1), rate })),
  );
  await take(store, [{ ...makeHit('b', 1), rate: rates.concurrency }]);
  t.equal(await store.shared.deleteByPrefix('a '), 3);
  t.equal(store.size, 1);
});

t.test('the size of states is bounded, not only their number', async (t) => {
  let nowMs = 0;
  const store = new MemoryStore({ nowMs: () => nowMs, maxCounters: 200 });
  const rate = { algorithm: 'concurrency' as const, limit: 100, burst: 100, periodSeconds: 64 };
  const hit = (key: string, addend: number) => ({ ...makeHit(key, addend), rate });
  for (let second = 0; second < 64; second += 1) {
    nowMs = second * 1000;
    await take(store, [hit('a', 1)]);
  }
  t.same(await take(store, [hit('a', 0)]), [36]);
  t.equal(store.size, 43, '64 groups of two numbers');
  for (let key = 0; key < 170; key += 1) await take(store, [hit(`other ${key}`, 1)]);
  t.same(await take(store, [hit('a', 0), hit('other 169', 0)]), [36, 99]);
  t.equal(store.size, 200);
  t.equal(store.evicted, 13);
  await take(store, [hit('other 169', -1)]);
  t.equal(store.size, 199);
});
