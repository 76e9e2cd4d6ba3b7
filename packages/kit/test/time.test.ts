import t from 'tap';
import { inTime, monotonicNow, sleepFor } from '../src/time.ts';

t.test('sleep lasts as long as it was told, on the clock that does not go back', async (t) => {
  const startMs = monotonicNow();
  await sleepFor(20);
  // A timer may fire within the millisecond before.
  t.ok(monotonicNow() - startMs >= 19);
});

t.test('sleep ends with the reason of the signal', async (t) => {
  const reason = new Error('closing');
  const controller = new AbortController();
  const sleeping = sleepFor(60_000, { signal: controller.signal });
  controller.abort(reason);
  await t.rejects(sleeping, reason);
  await t.rejects(sleepFor(60_000, { signal: AbortSignal.abort(reason) }), reason);
});

t.test('what comes in time is answered, and what does not is an error', async (t) => {
  const late = (): Error => new Error('too late');
  t.equal(await inTime(Promise.resolve(7), 60_000, late), 7);
  await t.rejects(inTime(Promise.reject(new Error('lost')), 60_000, late), { message: 'lost' });
  await t.rejects(inTime(new Promise(() => undefined), 1, late), { message: 'too late' });
});
