import t from 'tap';
import { bucketBoundsMs, TimingHistogram } from '../../src/metrics/histogram.ts';

t.test('a timing on the bound of a bucket is in it', async (t) => {
  const histogram = new TimingHistogram();
  for (const ms of [0, 0.05, 0.0625, 5, 5.125, 10, 99_999]) histogram.record(ms);
  t.strictSame(
    bucketBoundsMs.map((boundMs) => histogram.countAtMost(boundMs)),
    [2, 3, 3, 3, 3, 3, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6],
  );
  t.equal(histogram.count, 7);
  t.equal(histogram.sumMs, 100_019.2375);
});

t.test('quantiles are at most 9 % too high', async (t) => {
  const histogram = new TimingHistogram();
  const fast = new TimingHistogram();
  for (let ms = 1; ms <= 1000; ms++) {
    histogram.record(ms);
    fast.record(0.025);
  }
  for (const [q, exact] of [
    [0.5, 500],
    [0.99, 990],
    [1, 1000],
  ] as const) {
    const estimate = histogram.quantileMs(q);
    t.ok(estimate >= exact && estimate <= exact * 1.091, `${q}: ${estimate}`);
  }
  t.ok(fast.quantileMs(0.5) >= 0.025 && fast.quantileMs(0.5) <= 0.025 * 1.091, 'of short times, too');
});

t.test('an empty histogram has quantile 0, and a clock that stepped back counts as 0', async (t) => {
  const histogram = new TimingHistogram();
  t.equal(histogram.quantileMs(0.99), 0);
  histogram.record(-3);
  t.equal(histogram.sumMs, 0);
  t.equal(histogram.countAtMost(0.05), 1);
});

t.test('other bounds are up to 9 % lower', async (t) => {
  const histogram = new TimingHistogram();
  for (let ms = 1; ms <= 1000; ms++) histogram.record(ms);
  for (const bound of [3, 30, 300, 700]) {
    const count = histogram.countAtMost(bound);
    t.ok(count <= bound && count >= Math.floor(bound / 1.091), `${bound}: ${count}`);
  }
  t.equal(histogram.countAtMost(0.000_001), 0);
  t.equal(histogram.countAtMost(1e9), 1000);
});
