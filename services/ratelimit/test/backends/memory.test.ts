import t from 'tap';
import { MemoryBackend } from '../../src/backends/memory.ts';
import { counterBackendContract, makeHit } from './counter-backend-contract.ts';

counterBackendContract(
  t,
  'memory',
  async () => new MemoryBackend({ nowMs: () => 1_000_000, maxCounters: 1_000 }),
);

t.test('a counter expires with its window', async (t) => {
  let now = 1_000;
  const backend = new MemoryBackend({ nowMs: () => now * 1000, maxCounters: 10 });
  await backend.add([makeHit('a', 3)]);
  now = 1_039;
  t.same(await backend.add([makeHit('a', 0)]), [3]);
  now = 1_040;
  t.same(await backend.read([makeHit('a')]), [0]);
  t.same(await backend.add([makeHit('b')]), [1]);
  t.equal(backend.size, 1, 'the old counter was evicted');
  t.equal(backend.evicted, 0);
});

t.test('a live counter survives a flood of other keys, and memory stays bounded', async (t) => {
  const backend = new MemoryBackend({ nowMs: () => 1_000_000, maxCounters: 1_000 });
  await backend.add([makeHit('live', 50)]);
  for (let i = 0; i < 20_000; i += 1) {
    await backend.add([makeHit(`flood-${i}`)]);
  }
  t.same(await backend.add([makeHit('live')]), [51]);
  t.equal(backend.size, 1_000);
  t.equal(backend.evicted, 19_001);
});

t.test('many live counters survive a flood of other keys', async (t) => {
  const backend = new MemoryBackend({ nowMs: () => 1_000_000, maxCounters: 1_000 });
  const live = Array.from({ length: 100 }, (_, i) => makeHit(`live-${i}`, 20));
  await backend.add(live);
  for (let i = 0; i < 20_000; i += 1) {
    await backend.add([makeHit(`flood-${i}`)]);
  }
  t.same(
    await backend.read(live),
    live.map(() => 20),
  );
});

t.test('counters that expire soonest are evicted first', async (t) => {
  const backend = new MemoryBackend({ nowMs: () => 1_000_000, maxCounters: 2 });
  const day = { ...makeHit('day'), unit: 'day', secondsLeft: 80_000 } as const;
  const second = { ...makeHit('second', 9), unit: 'second', secondsLeft: 1 } as const;
  await backend.add([day, second, makeHit('minute')]);
  t.same(await backend.read([day, second, makeHit('minute')]), [1, 0, 1]);
});

t.test('expired counters of a large window are removed gradually and never read', async (t) => {
  let now = 1_000;
  const backend = new MemoryBackend({ nowMs: () => now * 1000, maxCounters: 10_000 });
  await backend.add(Array.from({ length: 5_000 }, (_, i) => makeHit(`old-${i}`, 7)));
  now = 1_040;
  t.same(await backend.add([makeHit('old-4999')]), [1], 'the same name starts at 0');
  t.ok(backend.size > 4_900, 'one hit removes only a few');
  for (let i = 0; i < 2_000; i += 1) {
    await backend.add([makeHit('new')]);
  }
  t.equal(backend.size, 2);
  t.equal(backend.evicted, 0);
});

t.test('the size of states is bounded, not only their number', async (t) => {
  let nowMs = 0;
  const backend = new MemoryBackend({ nowMs: () => nowMs, maxCounters: 200 });
  const rate = { algorithm: 'concurrency' as const, limit: 100, burst: 100, periodSeconds: 64 };
  const hit = (key: string, addend: number) => ({ ...makeHit(key, addend), rate });
  for (let second = 0; second < 64; second += 1) {
    nowMs = second * 1000;
    await backend.add([hit('a', 1)]);
  }
  t.same(await backend.add([hit('a', 0)]), [36]);
  const one = (key: number) => backend.add([hit(`other ${key}`, 1)]);
  for (let key = 0; key < 170; key += 1) await one(key);
  t.same(await backend.add([hit('a', 0), hit('other 169', 0)]), [100, 99], 'evicted by fewer than 200');
  await backend.add([hit('other 169', -1)]);
  t.same(await backend.add([hit('other 169', 0)]), [100]);
});
