import t from 'tap';
import { waitForWindowMs } from '../window-margin.ts';

const hourMs = 3_600_000;

t.test('amidst an hour there is nothing to wait for', async (t) => {
  t.equal(waitForWindowMs(500_000 * hourMs), 0);
  t.equal(waitForWindowMs(500_000 * hourMs + hourMs / 2), 0);
  t.equal(waitForWindowMs(500_000 * hourMs - 45_001), 0);
});

t.test('right before the end of an hour the next one is waited for', async (t) => {
  t.equal(waitForWindowMs(500_000 * hourMs - 45_000), 45_000);
  t.equal(waitForWindowMs(500_000 * hourMs - 1), 1);
});
