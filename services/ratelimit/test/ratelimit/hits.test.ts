import t from 'tap';
import type { Hit } from '../../src/backends/counter-backend.ts';
import { MemoryBackend } from '../../src/backends/memory.ts';
import { addHits, type HitsContext, type LimitedDescriptor } from '../../src/ratelimit/hits.ts';
import { LocalCache } from '../../src/ratelimit/local-cache.ts';
import { StatsRegistry } from '../../src/stats/registry.ts';
import { limitOfAMinute } from '../support/limit-of-a-minute.ts';

const now = 1_000_000;
const stats = new StatsRegistry().rule('d', ['k']);

/** A descriptor with a limit per minute. */
function limited(key: string, requestsPerUnit: number, addend = 1): LimitedDescriptor {
  return {
    limit: limitOfAMinute(requestsPerUnit),
    hit: { key, addend, unit: 'minute', secondsLeft: 20, ttlSeconds: 60 },
    stats,
  };
}

/** Adds hits to a backend that records its calls. */
function makeAddHits(options: Partial<HitsContext> = {}) {
  const calls: string[] = [];
  const memory = new MemoryBackend({ nowMs: () => now * 1000, maxCounters: 100 });
  const note = (what: string, hits: readonly Hit[]) =>
    calls.push(`${what} ${hits.map(({ key, addend }) => `${key}+${addend}`).join(' ')}`);
  const backend: HitsContext['backend'] = {
    add(hits) {
      note('add', hits);
      return memory.add(hits);
    },
    read(hits) {
      note('read', hits);
      return memory.read(hits);
    },
  };
  const context = { backend, stopIncrementWhenOverLimit: false, ...options };
  return { calls, add: (...all: readonly LimitedDescriptor[]) => addHits(context, all, now) };
}

t.test('reaching the limit is OK, exceeding it is over', async (t) => {
  const { add } = makeAddHits();
  t.match(await add(limited('a', 2, 2)), [{ count: 2, over: false, fromLocalCache: false }]);
  t.match(await add(limited('a', 2, 0)), [{ count: 2, over: false }]);
  t.match(await add(limited('a', 2, 1)), [{ count: 3, over: true }]);
  t.match(await add(limited('a', 2, 0)), [{ count: 3, over: true }]);
});

t.test('counters in the local cache are not sent, and the others keep their positions', async (t) => {
  const { add, calls } = makeAddHits({ localCache: new LocalCache(0) });
  await add(limited('over', 0));
  t.match(await add(limited('a', 5, 2), limited('over', 0), limited('b', 5, 3)), [
    { count: 2, over: false, fromLocalCache: false },
    { over: true, fromLocalCache: true },
    { count: 3, over: false, fromLocalCache: false },
  ]);
  t.same(calls, ['add over+1', 'add a+2 b+3']);
});

t.test('with all counters in the local cache the backend is not called, even to read', async (t) => {
  const { add, calls } = makeAddHits({ localCache: new LocalCache(0) });
  await add(limited('over', 0));
  t.match(await add(limited('over', 0, 0)), [{ over: true, fromLocalCache: true }]);
  t.equal(calls.length, 1);
});

t.test('the local cache keeps a counter until its window ends', async (t) => {
  const localCache = new LocalCache(0);
  await makeAddHits({ localCache }).add(limited('over', 0), limited('under', 1));
  t.ok(localCache.has('over', now + 19));
  t.notOk(localCache.has('over', now + 20));
  t.notOk(localCache.has('under', now));
});

t.test('a result that is older than a reset is not added to the local cache', async (t) => {
  const localCache = new LocalCache(0);
  const { add } = makeAddHits({ localCache });
  const result = add(limited('over', 0));
  localCache.forget(['over']);
  t.match(await result, [{ over: true }]);
  t.notOk(localCache.has('over', now));
  await add(limited('over', 0));
  t.ok(localCache.has('over', now));
});

t.test('STOP_…: when no limit would be exceeded, all counters are read and then added to', async (t) => {
  const { add, calls } = makeAddHits({ stopIncrementWhenOverLimit: true });
  t.match(await add(limited('a', 2), limited('b', 1)), [{ count: 1 }, { count: 1 }]);
  t.same(calls, ['read a+0 b+0', 'add a+1 b+1'], 'a hit that reaches the limit does not exceed it');
});

t.test('STOP_…: when limits would be exceeded, only their counters are added to', async (t) => {
  const { add, calls } = makeAddHits({ stopIncrementWhenOverLimit: true });
  t.match(await add(limited('a', 9, 3), limited('b', 1, 2), limited('c', 9, 3)), [
    { count: 0, over: false },
    { count: 2, over: true },
    { count: 0, over: false },
  ]);
  t.same(calls[1], 'add a+0 b+2 c+0');
});

t.test('STOP_…: with a counter in the local cache, nothing is read and nothing added', async (t) => {
  const { add, calls } = makeAddHits({
    stopIncrementWhenOverLimit: true,
    localCache: new LocalCache(0),
  });
  await add(limited('over', 0));
  t.match(await add(limited('a', 9, 3), limited('over', 0)), [{ count: 0 }, { fromLocalCache: true }]);
  t.same(calls.slice(2), ['add a+0']);
});

t.test('a refund is sent even if the counter is in the local cache, which forgets it', async (t) => {
  const { add, calls } = makeAddHits({ localCache: new LocalCache(0), stopIncrementWhenOverLimit: true });
  await add(limited('a', 1, 3));
  t.match(await add(limited('a', 1, -3)), [{ count: 0, over: false, fromLocalCache: false }]);
  t.match(await add(limited('a', 1, 1)), [{ count: 1, over: false, fromLocalCache: false }]);
  t.strictSame(
    calls.filter((call) => call.startsWith('add')),
    ['add a+3', 'add a+-3', 'add a+1'],
  );
});

t.test('a refund beside a limit that is exceeded is applied', async (t) => {
  const { add, calls } = makeAddHits({ stopIncrementWhenOverLimit: true });
  await add(limited('a', 5, 5), limited('b', 5, 5));
  await add(limited('a', 5, -2), limited('b', 5, 1));
  t.strictSame(calls.at(-1), 'add a+-2 b+1');
});
