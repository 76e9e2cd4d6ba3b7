import t from 'tap';
import { type LimitCheck, requireResult } from '../../src/decision/check.ts';
import { addHits, type HitsContext } from '../../src/decision/hits.ts';
import { LocalCache } from '../../src/decision/local-cache.ts';
import type { Hit } from '../../src/stores/counter-store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { limitOfAMinute } from '../support/limit-of-a-minute.ts';

const now = 1_000_000;

/** A descriptor with a limit per minute. */
function limited(key: string, requestsPerUnit: number, addend = 1): LimitCheck {
  return {
    limit: limitOfAMinute(requestsPerUnit),
    hit: { key, addend, capacity: requestsPerUnit, unit: 'minute', secondsLeft: 20, ttlSeconds: 60 },
    result: undefined,
  };
}

/** Adds hits to a store that records its calls. */
function makeAddHits(options: Partial<HitsContext> = {}) {
  const calls: string[] = [];
  const memory = new MemoryStore({ nowMs: () => now * 1000, maxCounters: 100 });
  const note = (what: string, hits: readonly Hit[]) =>
    calls.push(`${what} ${hits.map(({ key, addend }) => `${key}+${addend}`).join(' ')}`);
  const store: HitsContext['store'] = {
    take(hits) {
      note('take', hits);
      return memory.take(hits);
    },
    peek(hits) {
      note('peek', hits);
      return memory.peek(hits);
    },
  };
  const context = { store, stopIncrementWhenOverLimit: false, ...options };
  const add = async (...checks: readonly LimitCheck[]) => {
    await addHits(context, checks, now);
    return checks.map((check) => {
      const { allowed, used: count, fromLocalCache = false } = requireResult(check);
      return { count, over: !allowed, fromLocalCache };
    });
  };
  return { calls, add };
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
  t.same(calls, ['take over+1', 'take a+2 b+3']);
});

t.test('with all counters in the local cache the store is not called, even to read', async (t) => {
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
  t.same(calls, ['peek a+1 b+1', 'take a+1 b+1'], 'a hit that reaches the limit does not exceed it');
});

t.test('STOP_…: when limits would be exceeded, only their counters are added to', async (t) => {
  const { add, calls } = makeAddHits({ stopIncrementWhenOverLimit: true });
  t.match(await add(limited('a', 9, 3), limited('b', 1, 2), limited('c', 9, 3)), [
    { count: 0, over: false },
    { count: 2, over: true },
    { count: 0, over: false },
  ]);
  t.same(calls[1], 'take a+0 b+2 c+0');
});

t.test('STOP_…: with a counter in the local cache, nothing is read and nothing added', async (t) => {
  const { add, calls } = makeAddHits({
    stopIncrementWhenOverLimit: true,
    localCache: new LocalCache(0),
  });
  await add(limited('over', 0));
  t.match(await add(limited('a', 9, 3), limited('over', 0)), [{ count: 0 }, { fromLocalCache: true }]);
  t.same(calls.slice(2), ['take a+0']);
});

t.test('a refund is sent even if the counter is in the local cache, which forgets it', async (t) => {
  const { add, calls } = makeAddHits({ localCache: new LocalCache(0), stopIncrementWhenOverLimit: true });
  await add(limited('a', 1, 3));
  t.match(await add(limited('a', 1, -3)), [{ count: 0, over: false, fromLocalCache: false }]);
  t.match(await add(limited('a', 1, 1)), [{ count: 1, over: false, fromLocalCache: false }]);
  t.strictSame(
    calls.filter((call) => call.startsWith('take')),
    ['take a+3', 'take a+-3', 'take a+1'],
  );
});

t.test('a refund beside a limit that is exceeded is applied', async (t) => {
  const { add, calls } = makeAddHits({ stopIncrementWhenOverLimit: true });
  await add(limited('a', 5, 5), limited('b', 5, 5));
  await add(limited('a', 5, -2), limited('b', 5, 1));
  t.strictSame(calls.at(-1), 'take a+-2 b+1');
});
