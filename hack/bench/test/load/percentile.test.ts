import t from 'tap';
import { percentile } from '../../load/percentile.ts';

t.test('a percentile is the sample at its nearest rank', async (t) => {
  const hundred = Float64Array.from({ length: 100 }, (_, i) => i + 1);
  t.equal(percentile(hundred, 50), 50);
  t.equal(percentile(hundred, 99), 99);
  t.equal(percentile(hundred, 100), 100);
  t.equal(percentile(Float64Array.of(7), 99), 7);
  t.equal(percentile(new Float64Array(0), 50), 0);
});
