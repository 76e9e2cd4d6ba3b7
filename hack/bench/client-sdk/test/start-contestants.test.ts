import t from 'tap';
import { startContestants } from '../start-contestants.ts';

/** Nobody listens there. */
const deadOrigin = 'http://127.0.0.1:1';

t.test('each contestant works in a process of its own, as often as it is told to', async (t) => {
  const { contestants, stop } = await startContestants('requestsWithoutNetwork', deadOrigin);
  t.teardown(stop);
  t.equal(contestants[0]?.name, 'fetch');
  const warn = t.capture(process, 'emitWarning');
  for (const { measure } of contestants.slice(0, 2)) {
    // More rounds than a process may have listeners for one event.
    for (let round = 0; round < 12; round++) {
      const { callsPerSecond, cpuMicros } = await measure({ roundMs: 5, concurrency: 1 });
      t.ok(callsPerSecond > 0);
      t.ok(cpuMicros >= 0);
    }
  }
  t.strictSame(warn(), []);
});

t.test('what fails in one of them is told by name', async (t) => {
  const { contestants, stop } = await startContestants('tokens', deadOrigin);
  t.teardown(stop);
  const measured = contestants.map(({ measure }) => measure({ roundMs: 5, concurrency: 1 }));
  const [fetch] = await Promise.allSettled(measured);
  t.match(fetch, { status: 'rejected', reason: /^Error: fetch: fetch failed/ });
});
