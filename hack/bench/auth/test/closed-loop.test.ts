import { setImmediate as later } from 'node:timers/promises';
import t from 'tap';
import { runClosedLoop } from '../closed-loop.ts';

t.test('every asker asks again as soon as it is answered, until the time is over', async (t) => {
  const asked = [0, 0];
  const askers = asked.map((_, i) => async () => {
    asked[i] = (asked[i] ?? 0) + 1;
    await later();
  });
  const result = await runClosedLoop(askers, 200);
  t.equal(result.requests, (asked[0] ?? 0) + (asked[1] ?? 0));
  t.ok(result.requests > 2);
  t.ok(result.p50Ms <= result.p99Ms);
  t.ok(Math.abs(result.perSecond * 0.2 - result.requests) < result.requests);
});

t.test('an answer that is not the one that is measured ends it', async (t) => {
  await t.rejects(runClosedLoop([() => Promise.reject(new Error('answered 500'))], 1000), /answered 500/);
});
