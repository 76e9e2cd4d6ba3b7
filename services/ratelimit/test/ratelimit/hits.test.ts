import t from 'tap';
import type { CounterBackend, CounterHit } from '../../src/backends/counter-backend.ts';
import { createMemoryBackend } from '../../src/backends/memory.ts';
import { type Counted, type CountHitsDeps, createCountHits } from '../../src/ratelimit/hits.ts';
import { createLocalCache } from '../../src/ratelimit/local-cache.ts';
import { createStatsRegistry } from '../../src/stats/registry.ts';
import { limitOfAMinute } from '../support/limit-of-a-minute.ts';

const now = 1_000_000;
const counters = createStatsRegistry().rule('d', ['k']);

/** One hit on a counter of a minute with this limit. */
function counted(key: string, requestsPerUnit: number, addend = 1): Counted {
  return {
    limit: limitOfAMinute(requestsPerUnit),
    hit: { key, addend, unit: 'minute', secondsLeft: 20, ttlSeconds: 60 },
    counters,
  };
}

/** A step on a backend that writes down what it is asked. */
function makeCountHits(options: Partial<CountHitsDeps> = {}) {
  const asked: string[] = [];
  const memory = createMemoryBackend({ nowSeconds: () => now, maxCounters: 100 });
  const note = (what: string, hits: readonly CounterHit[]) =>
    asked.push(`${what} ${hits.map(({ key, addend }) => `${key}+${addend}`).join(' ')}`);
  const backend: CounterBackend = {
    ...memory,
    add(hits) {
      note('add', hits);
      return memory.add(hits);
    },
    read(hits) {
      note('read', hits);
      return memory.read(hits);
    },
  };
  const countHits = createCountHits({ backend, stopIncrementWhenOverLimit: false, ...options });
  return { asked, countHits: (...all: readonly Counted[]) => countHits(all, now) };
}

t.test('over is what exceeds the limit, not what reaches it', async (t) => {
  const { countHits } = makeCountHits();
  t.match(await countHits(counted('a', 2, 2)), [{ after: 2, over: false, fromLocalCache: false }]);
  t.match(await countHits(counted('a', 2, 0)), [{ after: 2, over: false }]);
  t.match(await countHits(counted('a', 2, 1)), [{ after: 3, over: true }]);
  t.match(await countHits(counted('a', 2, 0)), [{ after: 3, over: true }]);
});

t.test('what the local cache knows is not asked for, and the others keep their places', async (t) => {
  const { countHits, asked } = makeCountHits({ localCache: createLocalCache(0) });
  await countHits(counted('over', 0));
  t.match(await countHits(counted('a', 5, 2), counted('over', 0), counted('b', 5, 3)), [
    { after: 2, over: false, fromLocalCache: false },
    { over: true, fromLocalCache: true },
    { after: 3, over: false, fromLocalCache: false },
  ]);
  t.same(asked, ['add over+1', 'add a+2 b+3']);
});

t.test('when the local cache knows all of them the backend is not asked, not even for a look', async (t) => {
  const { countHits, asked } = makeCountHits({ localCache: createLocalCache(0) });
  await countHits(counted('over', 0));
  t.match(await countHits(counted('over', 0, 0)), [{ over: true, fromLocalCache: true }]);
  t.equal(asked.length, 1);
});

t.test('a counter is remembered as over until its window ends', async (t) => {
  const localCache = createLocalCache(0);
  await makeCountHits({ localCache }).countHits(counted('over', 0), counted('under', 1));
  t.ok(localCache.has('over', now + 19));
  t.notOk(localCache.has('over', now + 20));
  t.notOk(localCache.has('under', now));
});

t.test('STOP_…: when nothing would exceed, all are read first and then added to', async (t) => {
  const { countHits, asked } = makeCountHits({ stopIncrementWhenOverLimit: true });
  t.match(await countHits(counted('a', 2), counted('b', 1)), [{ after: 1 }, { after: 1 }]);
  t.same(asked, ['read a+1 b+1', 'add a+1 b+1'], 'a hit that reaches the limit does not exceed it');
});

t.test('STOP_…: when some would exceed, only these are added to and the others kept alive', async (t) => {
  const { countHits, asked } = makeCountHits({ stopIncrementWhenOverLimit: true });
  t.match(await countHits(counted('a', 9, 3), counted('b', 1, 2), counted('c', 9, 3)), [
    { after: 0, over: false },
    { after: 2, over: true },
    { after: 0, over: false },
  ]);
  t.same(asked[1], 'add a+0 b+2 c+0');
});

t.test('STOP_…: when the local cache knows one, nothing is read and nothing added', async (t) => {
  const { countHits, asked } = makeCountHits({
    stopIncrementWhenOverLimit: true,
    localCache: createLocalCache(0),
  });
  await countHits(counted('over', 0));
  t.match(await countHits(counted('a', 9, 3), counted('over', 0)), [{ after: 0 }, { fromLocalCache: true }]);
  t.same(asked.slice(2), ['add a+0']);
});
