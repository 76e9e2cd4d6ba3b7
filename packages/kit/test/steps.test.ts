import t from 'tap';
import { runInSlices, type Steps } from '../src/steps.ts';

/** Work of `steps` steps; each advances the clock by a millisecond. */
function work(steps: number) {
  const clock = { ms: 0 };
  function* run(): Steps<string> {
    for (let i = 0; i < steps; i += 1) {
      clock.ms += 1;
      yield;
    }
    return 'done';
  }
  return { run, nowMs: () => clock.ms };
}

/** Turns of the event loop until a promise has settled. */
async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  let turns = 0;
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  void promise.then(settle, settle);
  await Promise.resolve();
  await Promise.resolve();
  while (!settled) {
    await new Promise(setImmediate);
    turns += 1;
  }
  return turns;
}

t.test('work that fits into one slice completes without yielding', async (t) => {
  const { run, nowMs } = work(4);
  const result = runInSlices(run(), { sliceMs: 5, nowMs });
  t.equal(await turnsUntil(result), 0);
  t.equal(await result, 'done');
});

t.test('longer work yields to the event loop after each slice', async (t) => {
  const { run, nowMs } = work(52);
  const result = runInSlices(run(), { sliceMs: 5, nowMs });
  t.equal(await turnsUntil(result), 10);
  t.equal(await result, 'done');
});

t.test('an error thrown by the work rejects the promise', async (t) => {
  function* broken(): Steps<never> {
    yield;
    throw new Error('no such rule');
  }
  await t.rejects(runInSlices(broken(), { sliceMs: 5 }), { message: 'no such rule' });
});
