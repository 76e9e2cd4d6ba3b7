import type { Rate } from '@tollgate/rules/rule-set';
import fc from 'fast-check';
import t from 'tap';
import type { State, Taken, TakeRequest } from '../../src/algorithms/algorithm.ts';
import { algorithms } from '../../src/algorithms/registry.ts';

const second = 1e6;

function take(rate: Rate, state: State, request: TakeRequest): Taken {
  return algorithms[rate.algorithm].take(rate, state, request);
}

/** Sends hits at times in seconds to a new counter; a refusal is the negative wait. */
function send(rate: Rate, ...hits: readonly (readonly [atSeconds: number, hits: number])[]): number[] {
  let state: State;
  return hits.map(([at, count]) => {
    const taken = take(rate, state, { hits: count, times: 1, nowUs: at * second });
    state = taken.state ?? state;
    return taken.taken === 0 ? -taken.waitSeconds : taken.remaining;
  });
}

const bucket: Rate = { algorithm: 'token_bucket', limit: 60, periodSeconds: 60, burst: 3 };
const sliding: Rate = { algorithm: 'sliding_window', limit: 10, periodSeconds: 60, burst: 10 };

t.test('a token bucket lets through a burst, then one request per refill', async (t) => {
  t.same(send(bucket, [0, 1], [0, 1], [0, 1], [0, 1], [0.5, 1], [1, 1], [1, 1]), [2, 1, 0, -1, -1, 0, -1]);
});

t.test('a token bucket holds no more than its burst', async (t) => {
  t.same(send(bucket, [0, 3], [1000, 0], [1000, 3], [1000, 1]), [0, 3, 0, -1]);
});

t.test('more hits than the burst never fit', async (t) => {
  t.same(send(bucket, [0, 4], [1000, 4]), [-60, -60]);
});

t.test('the wait of a token bucket is until the hits fit', async (t) => {
  t.same(send(bucket, [0, 3], [0, 3], [2.9, 3], [3, 3]), [0, -3, -1, 0]);
});

t.test('a sliding window weights the previous window by its part in the last period', async (t) => {
  t.same(send(sliding, [0, 10], [59, 1], [60, 1], [66, 1], [66, 1], [90, 0]), [0, -7, -6, 0, -6, 4]);
});

t.test('the wait of a sliding window is until the hits fit', async (t) => {
  t.same(send(sliding, [0, 10], [30, 5], [89, 5], [90, 5]), [0, -60, -1, 0]);
  t.same(send(sliding, [0, 1], [0, 11]), [9, -60], 'more than the limit never fits');
});

const slots: Rate = { algorithm: 'concurrency', limit: 10, periodSeconds: 64, burst: 10 };

t.test('slots are free again after a refund, or after the period', async (t) => {
  t.same(send(slots, [0, 9], [1, 1], [2, 1], [2, -1], [2, 1], [3, 0]), [1, 0, -62, 1, 0, -61]);
  t.same(send(slots, [0, 10], [63, 1], [64, 1]), [0, -1, 9], 'expired');
  t.same(send(slots, [0.5, 10], [64.5, 1], [65, 1]), [0, -1, 9], 'rounded up to a 64th of the period');
});

t.test('the wait for slots is until enough have expired', async (t) => {
  t.same(send(slots, [0, 3], [10, 3], [20, 4], [20, 3], [20, 4], [20, 7], [20, 11]), [
    ...[7, 4, 0],
    ...[-44, -54, -64, -64],
  ]);
});

t.test('a refund releases the slots that expire first', async (t) => {
  t.same(send(slots, [0, 5], [30, 5], [40, -5], [64, 0], [93, 0], [94, 0]), [5, 0, 5, 5, 5, 10]);
});

t.test('the state of a concurrency limit is bounded, however many requests it has', async (t) => {
  const wide: Rate = { ...slots, limit: 1e6, burst: 1e6 };
  let state: State;
  for (let i = 0; i < 5000; i += 1) {
    const taken = take(wide, state, { hits: 1, times: 1, nowUs: i * 50_000 });
    state = taken.state ?? state;
  }
  t.equal(state?.length, 65 * 2);
});

for (const rate of [bucket, sliding, slots]) {
  t.test(`${rate.algorithm}: a limit of 0 refuses, and a check takes nothing`, async (t) => {
    const none = { ...rate, limit: 0, burst: 0 };
    const wait = -rate.periodSeconds;
    t.same(send(none, [0, 1], [100, 1], [100, 0]), [wait, wait, wait]);
    t.same(send(rate, [0, 0], [0, 1], [0, 0], [0, 0]), [
      rate.burst,
      rate.burst - 1,
      rate.burst - 1,
      rate.burst - 1,
    ]);
  });

  t.test(`${rate.algorithm}: a refund gives hits back, up to the limit`, async (t) => {
    t.same(send(rate, [0, rate.burst], [0, -2], [0, -100], [0, 1]), [0, 2, rate.burst, rate.burst - 1]);
  });
}

t.test('a check of 0 hits is refused until one hit is left', async (t) => {
  t.same(send(bucket, [0, 3], [0, 0], [0.5, 0], [1, 0], [1, 0]), [0, -1, -1, 1, 1]);
  t.same(send(sliding, [0, 10], [30, 0], [60, 0], [66, 0]), [0, -36, -6, 1]);
  t.same(send(slots, [0, 10], [60, 0], [64, 0]), [0, -4, 10]);
});

t.test('with charge always, hits that do not fit are a debt that time pays', async (t) => {
  const charged: Rate = { ...bucket, maxDebt: 'burst' };
  t.same(send(charged, [0, 2], [0, 3], [0, 0], [2, 0], [3, 0]), [1, -5, -3, -1, 1]);
  t.same(send(charged, [0, 100], [0, 100], [4, 0], [6, 0]), [-60, -60, 1, 3], 'up to the burst');
  t.same(send({ ...charged, maxDebt: 0 }, [0, 100], [1, 0]), [-60, 1], 'no debt: the bucket is empty');
  const window: Rate = { ...sliding, maxDebt: 'burst' };
  t.same(send(window, [0, 9], [0, 5], [60, 0], [81, 0], [82, 0]), [1, -99, -22, -1, 1]);
  t.same(send(window, [0, 500], [0, 500], [93, 0], [120, 0]), [-60, -60, 1, 10], 'up to the limit twice');
  t.same(send({ ...charged, limit: 0 }, [0, 5], [60, 0]), [-60, -60], 'a limit of 0 has no debt');
});

t.test('a smaller maximum forgives the part of a debt that is above it', async (t) => {
  const { state } = take({ ...bucket, maxDebt: 50 }, undefined, { hits: 40, times: 1, nowUs: second });
  const check = { hits: 0, times: 1, nowUs: second };
  t.equal(take({ ...bucket, maxDebt: 50 }, state, check).waitSeconds, 38);
  t.equal(take({ ...bucket, maxDebt: 2 }, state, check).waitSeconds, 3);
  t.equal(take(bucket, state, check).waitSeconds, 38, 'time pays it without charge always as well');
});

t.test(
  'after a small step back of the clock, a counter keeps its hits and waits include the step',
  async (t) => {
    t.same(
      send(bucket, [1000, 2], [998, 0], [998, 1], [998, 1], [1000.9, 1], [1001, 1]),
      [1, 1, 0, -3, -1, 0],
    );
    t.same(send(sliding, [1000, 9], [950, 0], [950, 1], [950, 1], [1025.9, 1], [1026, 1]), [
      ...[1, 1, 0],
      ...[-76, -1, 0],
    ]);
    t.same(
      send(slots, [1000, 9], [950, 0], [950, 1], [950, 1], [1063, 1], [1064, 1]),
      [1, 1, 0, -114, -1, 9],
    );
  },
);

t.test('a counter starts again when the clock steps back by more than a state may be ahead', async (t) => {
  for (const rate of [bucket, sliding, slots]) {
    const { burst, algorithm } = rate;
    const refused = { token_bucket: 3, sliding_window: 119, concurrency: 63 }[algorithm];
    t.ok((send(rate, [1019, burst], [1019 - refused, 1])[1] ?? 0) < 0, algorithm);
    t.same(send(rate, [1019, burst], [1016 - refused, burst]), [0, 0], algorithm);
  }
});

for (const algorithm of ['sliding_window', 'concurrency'] as const) {
  t.test(`${algorithm}: a counter starts again when the period changes`, async (t) => {
    for (const [before, after] of [
      [60, 86_400],
      [86_400, 60],
    ] as const) {
      const rate: Rate = { algorithm, limit: 10, burst: 10, periodSeconds: before };
      const { state } = take(rate, undefined, { hits: 7, times: 1, nowUs: 1.8e15 });
      const later = { hits: 1, times: 1, nowUs: 1.8e15 + second };
      t.match(take({ ...rate, periodSeconds: after }, state, later), { taken: 1, remaining: 9 });
    }
  });
}

const seconds = fc.array(
  fc.tuple(fc.double({ min: 0, max: 40, noNaN: true }), fc.integer({ min: 0, max: 4 })),
  {
    maxLength: 60,
  },
);

t.test('a token bucket allows at most the burst and the refill in any span of time', async (t) => {
  const rates = fc.record({
    limit: fc.integer({ min: 1, max: 1000 }),
    burst: fc.integer({ min: 1, max: 20 }),
    periodSeconds: fc.constantFrom(1, 60, 3600),
  });
  const property = fc.property(rates, seconds, (options, gaps) => {
    const rate: Rate = { algorithm: 'token_bucket', ...options };
    const allowed = allowedHits(rate, gaps);
    return everySpan(
      allowed,
      (span, hits) => hits <= rate.burst + (span * rate.limit) / rate.periodSeconds + 1e-3,
    );
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 1000 }));
});

t.test('a sliding window allows at most twice its limit in any period', async (t) => {
  const property = fc.property(fc.integer({ min: 1, max: 30 }), seconds, (limit, gaps) => {
    const rate: Rate = { algorithm: 'sliding_window', limit, burst: limit, periodSeconds: 60 };
    return everySpan(allowedHits(rate, gaps), (span, hits) => span > 60 || hits < 2 * limit + 1e-3);
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 1000 }));
});

/** Times and numbers of the hits that were allowed. */
function allowedHits(rate: Rate, gaps: readonly (readonly [gap: number, hits: number])[]) {
  let at = 1e6;
  const times = gaps.map(([gap, hits]) => {
    at += gap;
    return [at, hits] as const;
  });
  const results = send(rate, ...times);
  return times.filter((_, i) => (results[i] ?? 0) >= 0);
}

function everySpan(
  hits: readonly (readonly [at: number, hits: number])[],
  holds: (span: number, hits: number) => boolean,
): boolean {
  return hits.every(([from], first) => {
    let sum = 0;
    return hits.slice(first).every(([to, count]) => {
      sum += count;
      return holds(to - from, sum);
    });
  });
}
