import type { TAP, Test } from 'tap';
import type { LimitCheck } from '../../src/decision/check.ts';
import { addHits } from '../../src/decision/hits.ts';
import type { ConditionalHit } from '../../src/stores/all-or-none.ts';
import type { CounterStore, Hit } from '../../src/stores/counter-store.ts';
import { peek, take, toCounts } from '../support/counts.ts';
import { limitOfAMinute } from '../support/limit-of-a-minute.ts';

/** Starts a store for one test and closes it at the end. */
export type MakeStore = (t: Test) => Promise<CounterStore>;

/** A hit on a minute's counter, 40 seconds before the window ends. */
export function makeHit(key: string, addend = 1): Hit {
  return { key, addend, capacity: 1_000_000, unit: 'minute', secondsLeft: 40, ttlSeconds: 60 };
}

function limitedTo(requestsPerUnit: number, key: string): LimitCheck {
  return {
    limit: limitOfAMinute(requestsPerUnit),
    hit: { ...makeHit(key), capacity: requestsPerUnit },
    result: undefined,
  };
}

/** Whether each of the checks is over its limit. */
async function addStopping(store: CounterStore, checks: readonly LimitCheck[]): Promise<boolean[]> {
  await addHits({ store, stopIncrementWhenOverLimit: true }, checks, 1_000_000);
  return checks.map(({ result }) => result?.allowed === false);
}

/** Abilities that not every store has; the defaults are true. */
export interface BackendAbilities {
  /** Rejects hits beyond 64 bits. */
  readonly refusesOverflow?: boolean;
  /** Has sliding windows and token buckets. */
  readonly rates?: boolean;
  /** Decides several counters together. */
  readonly atomic?: boolean;
}

/** The tests that every counter store passes. */
export function counterBackendContract(
  t: TAP,
  name: string,
  makeStore: MakeStore,
  { refusesOverflow = true, rates = true, atomic = true }: BackendAbilities = {},
): void {
  t.test(`${name}: a counter starts at 0 and grows by the hits`, async (t) => {
    const store = await makeStore(t);
    t.same(await take(store, [makeHit('a')]), [1]);
    t.same(await take(store, [makeHit('a', 5)]), [6]);
  });

  t.test(`${name}: counts come in the order of the hits`, async (t) => {
    const store = await makeStore(t);
    t.same(await take(store, [makeHit('a', 3), makeHit('b', 7), makeHit('c', 1)]), [3, 7, 1]);
  });

  t.test(`${name}: equal keys in one call are added one after the other`, async (t) => {
    const store = await makeStore(t);
    t.same(await take(store, [makeHit('a', 2), makeHit('b'), makeHit('a', 3)]), [2, 1, 5]);
  });

  t.test(`${name}: adding 0 returns the count and changes nothing`, async (t) => {
    const store = await makeStore(t);
    await take(store, [makeHit('a', 4)]);
    t.same(await take(store, [makeHit('a', 0), makeHit('new', 0)]), [4, 0]);
    t.same(await peek(store, [makeHit('a')]), [4]);
  });

  t.test(`${name}: reading returns the counts and creates no counters`, async (t) => {
    const store = await makeStore(t);
    await take(store, [makeHit('a', 2)]);
    t.same(await peek(store, [makeHit('a'), makeHit('missing'), makeHit('a')]), [2, 0, 2]);
    t.same(await take(store, [makeHit('missing')]), [1]);
  });

  t.test(
    `${name}: with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT a rejected request adds nothing to its other limits`,
    async (t) => {
      const store = await makeStore(t);
      const request = [limitedTo(10, 'wide'), limitedTo(2, 'narrow'), limitedTo(20, 'widest')];
      const over = [];
      for (let i = 0; i < 4; i += 1) {
        over.push(await addStopping(store, request));
      }
      t.same(over, [...Array(2).fill([false, false, false]), ...Array(2).fill([false, true, false])]);
      t.same(
        await peek(
          store,
          request.map(({ hit }) => hit),
        ),
        [2, 4, 2],
      );
    },
  );

  t.test(`${name}: hits and counts beyond 32 bits are exact`, async (t) => {
    const store = await makeStore(t);
    t.same(await take(store, [makeHit('a', 2 ** 32), makeHit('a', 2 ** 32)]), [2 ** 32, 2 ** 33]);
    t.same(await take(store, [makeHit('a')]), [2 ** 33 + 1]);
  });

  t.test(`${name}: concurrent requests get distinct counts`, async (t) => {
    const store = await makeStore(t);
    const counts = await Promise.all(
      Array.from({ length: 200 }, () => take(store, [makeHit('hot'), makeHit('warm', 2)])),
    );
    t.same(
      counts.map(([hot]) => hot),
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
    t.same(await peek(store, [makeHit('hot'), makeHit('warm')]), [200, 400]);
  });

  t.test(`${name}: a count includes only earlier hits`, async (t) => {
    const store = await makeStore(t);
    const [first, look, second] = await Promise.all([
      take(store, [makeHit('a', 10)]),
      take(store, [makeHit('a', 0)]),
      take(store, [makeHit('a', 5)]),
    ]);
    t.same([first, look, second], [[10], [10], [15]]);
  });

  t.test(`${name}: a refund takes hits back, down to 0, and creates no counter`, async (t) => {
    const store = await makeStore(t);
    await take(store, [makeHit('a', 5)]);
    t.same(await take(store, [makeHit('a', -2), makeHit('missing', -3)]), [3, 0]);
    t.same(await take(store, [makeHit('a', -7)]), [0]);
    t.same(await take(store, [makeHit('a'), makeHit('missing')]), [1, 1]);
  });

  t.test(`${name}: concurrent hits and refunds leave the difference`, async (t) => {
    const store = await makeStore(t);
    await take(store, [makeHit('a', 1000)]);
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => take(store, [makeHit('a', i % 2 === 0 ? 3 : -2)])),
    );
    t.same(await peek(store, [makeHit('a')]), [1050]);
  });

  t.test(`${name}: keys are compared exactly`, async (t) => {
    const store = await makeStore(t);
    const keys = [
      '',
      ' ',
      'ä',
      'a\r\nb',
      '\u0000',
      '__proto__',
      'constructor',
      'k'.repeat(10_000),
      `${'k'.repeat(10_000)}l`,
    ];
    t.same(
      await take(
        store,
        keys.map((key, i) => makeHit(`d_${key}`, i + 1)),
      ),
      keys.map((_, i) => i + 1),
    );
  });

  for (const algorithm of rates ? (['sliding_window', 'token_bucket', 'concurrency'] as const) : []) {
    // A period of a year, in which nothing is refilled during the test.
    const rate = { algorithm, limit: 10, burst: 10, periodSeconds: 31_536_000 };
    const hit = (key: string, addend: number): Hit => ({
      ...makeHit(`${key}_${algorithm}`, addend),
      capacity: 10,
      rate,
    });

    t.test(
      `${name}: ${algorithm}: hits are taken while they fit, and refused ones take nothing`,
      async (t) => {
        const store = await makeStore(t);
        t.same(await take(store, [hit('a', 3), makeHit('a', 2), hit('a', 0)]), [7, 2, 7]);
        const [refused = 0, rest] = await take(store, [hit('a', 8), hit('a', 7)]);
        t.ok(refused < -1, `refused for ${-1 - refused} s`);
        t.equal(rest, 0);
        t.same(await take(store, [hit('a', -4), hit('b', 1)]), [4, 9]);
      },
    );

    t.test(
      `${name}: ${algorithm}: with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT a limit that is exceeded stops the others`,
      async (t) => {
        const store = await makeStore(t);
        const limit = { ...limitOfAMinute(10), rate };
        const request = [limitedTo(100, 'wide'), { limit, hit: hit('stop', 4), result: undefined }];
        const results = [];
        for (let i = 0; i < 4; i += 1) {
          results.push(await addStopping(store, request));
        }
        t.same(results, [...Array(2).fill([false, false]), ...Array(2).fill([false, true])]);
        t.same(await peek(store, [makeHit('wide')]), [2]);
      },
    );

    t.test(`${name}: ${algorithm}: of concurrent hits exactly as many are taken as fit`, async (t) => {
      const store = await makeStore(t);
      const results = await Promise.all(Array.from({ length: 50 }, () => take(store, [hit('hot', 1)])));
      t.equal(results.filter(([result = -1]) => result >= 0).length, 10);
    });
  }

  if (atomic) allOrNoneContract(t, name, makeStore);

  if (refusesOverflow) {
    t.test(
      `${name}: hits beyond the signed 64-bit range are rejected and the counter is unchanged`,
      async (t) => {
        const store = await makeStore(t);
        await take(store, [makeHit('a', 2 ** 62)]);
        await t.rejects(take(store, [makeHit('a', 2 ** 62)]), {
          code: 'backend_failure',
          message: /overflow/,
        });
        t.same(await peek(store, [makeHit('a')]), [2 ** 62]);
      },
    );
  }

  t.test(`${name}: close is idempotent`, async (t) => {
    const store = await makeStore(t);
    await store.close();
    await store.close();
    await t.resolves(store.close());
  });
}

/** The tests that every store passes that decides several counters together. */
function allOrNoneContract(t: TAP, name: string, makeStore: MakeStore): void {
  // A period of a year, in which nothing is refilled during the test.
  const rate = { algorithm: 'token_bucket', limit: 10, burst: 10, periodSeconds: 31_536_000 } as const;
  const hit = (key: string, addend: number, more: Partial<ConditionalHit> = {}): ConditionalHit => {
    return { ...makeHit(key, addend), capacity: 10, refuses: 'alone', ...more };
  };
  const addAll = async (store: CounterStore, ...hits: readonly ConditionalHit[]) => {
    const whole = await store.takeAllOrNone?.(hits);
    const { refused, counts } =
      whole === undefined ? { refused: undefined, counts: [] } : toCounts(hits, whole);
    // Waits depend on the time.
    return [
      refused,
      ...counts.map((count, i) => (hits[i]?.rate === undefined ? count : Math.max(-1, count))),
    ];
  };

  t.test(`${name}: a request that one limit refuses is counted by none`, async (t) => {
    const store = await makeStore(t);
    t.same(await addAll(store, hit('wide', 3, { capacity: 100 }), hit('bucket', 3, { rate })), [false, 3, 7]);
    t.same(await addAll(store, hit('wide', 8, { capacity: 100 }), hit('bucket', 8, { rate })), [true, 3, -1]);
    t.same(await addAll(store, hit('wide', 5, { capacity: 7 }), hit('bucket', 5, { rate })), [true, -4, 7]);
    t.same(await peek(store, [makeHit('wide')]), [3]);
    t.same(await addAll(store, hit('wide', 7), hit('bucket', 7, { rate })), [false, 10, 0]);
  });

  t.test(`${name}: of concurrent requests as many are counted as fit all limits`, async (t) => {
    const store = await makeStore(t);
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) => {
        const hits = [hit('wide', 2, { capacity: 1000 }), hit('bucket', 1, { rate }), hit('narrow', 2)];
        return addAll(store, ...(i % 2 === 0 ? hits : hits.reverse()));
      }),
    );
    t.equal(results.filter(([refused]) => refused === false).length, 5);
    t.same(await addAll(store, hit('wide', 0), hit('bucket', 0, { rate }), hit('narrow', 0)), [
      false,
      10,
      5,
      10,
    ]);
  });

  t.test(`${name}: quotas refuse a request together, and shadow limits never`, async (t) => {
    const store = await makeStore(t);
    const quota = (key: string, addend: number): ConditionalHit => hit(key, addend, { refuses: 'together' });
    const shadow = (addend: number): ConditionalHit => hit('shadow', addend, { refuses: 'never' });
    t.same(await addAll(store, quota('a', 8), quota('b', 3), shadow(11)), [false, 8, 3, 11]);
    t.same(await addAll(store, quota('a', 3), quota('b', 3), shadow(1)), [false, 11, 6, 12]);
    t.same(await addAll(store, quota('a', 1), quota('b', 5), shadow(1)), [true, -11, -7, -11]);
    t.same(await addAll(store, quota('a', 1), quota('b', 4), hit('c', 11)), [true, -11, 6, -1]);
  });

  t.test(`${name}: hits of a request on one key are added up, and refunds never refused`, async (t) => {
    const store = await makeStore(t);
    const twice = [hit('a', 4), hit('a', 7), hit('b', 4, { rate }), hit('b', 7, { rate })];
    t.same(await addAll(store, ...twice), [true, 0, -1, 10, -1]);
    t.same(await addAll(store, hit('a', 4), hit('a', 6), hit('b', 4, { rate }), hit('b', 6, { rate })), [
      ...[false, 4, 10, 6, 0],
    ]);
    t.same(await addAll(store, hit('a', -3), hit('b', -3, { rate }), hit('new', -1)), [false, 7, 3, 0]);
    t.same(await addAll(store, hit('a', -9), hit('a', 11)), [true, 7, -8], 'of a refused request neither');
    t.same(await addAll(store, hit('a', -9), hit('a', 2)), [false, 0, 2]);
  });
}
