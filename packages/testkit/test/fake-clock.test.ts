import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';

t.test('the clock does not move until it is advanced', async (t) => {
  const clock = fakeClock(5000);
  t.equal(clock.nowMs(), 5000);
  clock.advance(250);
  t.equal(clock.nowMs(), 5250);
  clock.set(1000);
  t.equal(clock.now(), 1000);
});

t.test('sleepers wake in the order of their times', async (t) => {
  const clock = fakeClock();
  const woken: string[] = [];
  const late = clock.sleep(200).then(() => woken.push('late'));
  const early = clock.sleep(100).then(() => woken.push('early'));
  clock.advance(99);
  t.equal(clock.sleepers(), 2);
  clock.advance(101);
  await Promise.all([late, early]);
  t.same(woken, ['early', 'late']);
});

t.test('an aborted sleeper rejects with the reason and is removed', async (t) => {
  const clock = fakeClock();
  const controller = new AbortController();
  const sleeping = clock.sleep(100, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await t.rejects(sleeping, { message: 'enough' });
  t.equal(clock.sleepers(), 0);
  await t.rejects(clock.sleep(1, { signal: controller.signal }), { message: 'enough' });
});
