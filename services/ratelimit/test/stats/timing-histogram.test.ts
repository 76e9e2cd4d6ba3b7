import t from 'tap';
import { createTimingHistogram } from '../../src/stats/timing-histogram.ts';

t.test('a timing on the bound of a bucket belongs to it', async (t) => {
  const histogram = createTimingHistogram();
  for (const ms of [0, 5, 5.1, 10, 99_999]) histogram.record(ms);
  t.strictSame(histogram.buckets, [2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  t.equal(histogram.count, 5);
  t.equal(histogram.sumMs, 100_019.1);
});

t.test('quantiles are at most 9 % too high', async (t) => {
  const histogram = createTimingHistogram();
  for (let ms = 1; ms <= 1000; ms++) histogram.record(ms);
  for (const [q, exact] of [
    [0.5, 500],
    [0.99, 990],
    [1, 1000],
  ] as const) {
    const estimate = histogram.quantileMs(q);
    t.ok(estimate >= exact && estimate <= exact * 1.091, `${q}: ${estimate}`);
  }
});

t.test('an empty histogram has quantile 0, and a clock that stepped back counts as 0', async (t) => {
  const histogram = createTimingHistogram();
  t.equal(histogram.quantileMs(0.99), 0);
  histogram.record(-3);
  t.equal(histogram.sumMs, 0);
  t.equal(histogram.buckets[0], 1);
});
