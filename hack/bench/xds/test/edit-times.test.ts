import t from 'tap';
import { editTimes } from '../edit-times.ts';

t.test('edits are summed up by rank, whatever their order', async (t) => {
  const samples = Array.from({ length: 200 }, (_, i) => 200 - i);
  t.strictSame(editTimes(samples), { edits: 200, p50Ms: 100, p99Ms: 198, maxMs: 200 });
});

t.test('of a few edits the slowest is the 99th percentile', async (t) => {
  t.strictSame(editTimes([5, 80, 7]), { edits: 3, p50Ms: 7, p99Ms: 80, maxMs: 80 });
});
