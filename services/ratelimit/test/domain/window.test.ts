import t from 'tap';
import { secondsUntilReset, windowStart } from '../../src/domain/window.ts';

const day = 86_400;

t.test('windows are aligned to the epoch, whatever their unit', async (t) => {
  t.equal(windowStart(1_234, 1), 1_234);
  t.equal(windowStart(1_234, 60), 1_200);
  t.equal(windowStart(1_000_000, 3_600), 997_200);
  t.equal(windowStart(1_000_000, day), 950_400);
  t.equal(windowStart(1_000_000, 7 * day), 604_800);
  t.equal(windowStart(1_200, 60), 1_200, 'the first second belongs to its window');
  t.equal(windowStart(1_199, 60), 1_140, 'and the one before does not');
});

t.test('a reset is 1 second to a whole unit away, never 0', async (t) => {
  t.equal(secondsUntilReset(1_200, 60), 60);
  t.equal(secondsUntilReset(1_201, 60), 59);
  t.equal(secondsUntilReset(1_259, 60), 1);
  t.equal(secondsUntilReset(1_234, 1), 1);
});
