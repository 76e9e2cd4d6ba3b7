import { backoffDelays, retry } from '@tollgate/kit/backoff';
import t from 'tap';
import { createManualSleep } from './helpers/manual-sleep.ts';

t.test('delays grow by the factor up to the maximum', (t) => {
  const delay = backoffDelays({ initialMs: 1_000, maxMs: 30_000 });
  t.same(
    [1, 2, 3, 4, 5, 6, 7, 5_000].map(delay),
    [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000],
  );
  t.equal(backoffDelays({ initialMs: 0, maxMs: 10 })(5_000), 0);
  t.equal(backoffDelays({ initialMs: 100, maxMs: 10 })(1), 10);
  t.end();
});

t.test('a factor below one does not shorten delays', (t) => {
  t.same([1, 2, 3].map(backoffDelays({ initialMs: 10, maxMs: 60, factor: 0.5 })), [10, 10, 10]);
  t.end();
});

t.test('jitter spreads a delay evenly, up to the maximum', (t) => {
  const at = (random: number) =>
    backoffDelays({ initialMs: 1_000, maxMs: 1_200, jitter: 0.5, random: () => random })(1);
  t.same([0, 0.5, 0.6, 0.999].map(at), [500, 1_000, 1_100, 1_200]);
  t.end();
});

const backoff = { initialMs: 10, maxMs: 40 };

t.test('a function is called again until it succeeds', async (t) => {
  const slept: number[] = [];
  const received: unknown[] = [];
  const answer = await retry(
    (attempt) => {
      if (attempt < 4) throw new Error(`failure ${attempt}`);
      return `answer ${attempt}`;
    },
    {
      backoff,
      sleep: (ms) => Promise.resolve(slept.push(ms)),
      onRetry: ({ error, attempt, delayMs }) => received.push([String(error), attempt, delayMs]),
    },
  );
  t.equal(answer, 'answer 4');
  t.same(slept, [10, 20, 40]);
  t.same(received[2], ['Error: failure 3', 3, 40]);
});

t.test('an error that is not retryable is thrown at once', async (t) => {
  let calls = 0;
  const fatal = new Error('bad password');
  const failing = retry(
    () => {
      calls += 1;
      return Promise.reject(fatal);
    },
    { backoff, isRetryable: (error) => error !== fatal },
  );
  await t.rejects(failing, fatal);
  t.equal(calls, 1);
});

t.test('no attempt starts after maxElapsedMs', async (t) => {
  let nowMs = 0;
  let calls = 0;
  const failing = retry(
    () => {
      calls += 1;
      return Promise.reject(new Error(`failure ${calls}`));
    },
    {
      backoff,
      maxElapsedMs: 30,
      now: () => nowMs,
      sleep: (ms) => {
        nowMs += ms;
        return Promise.resolve();
      },
    },
  );
  await t.rejects(failing, { message: 'failure 3' });
  t.equal(nowMs, 30, 'after the delays of 10 and 20');
});

t.test('an abort ends the delay and the attempts', async (t) => {
  const { sleep, pending } = createManualSleep();
  const controller = new AbortController();
  const reason = new Error('stopping');
  let calls = 0;
  const failing = retry(
    () => {
      calls += 1;
      throw new Error('no');
    },
    {
      backoff,
      signal: controller.signal,
      sleep: (ms, { signal }) => sleep(ms, signal),
      onRetry: () => setImmediate(() => controller.abort(reason)),
    },
  );
  await t.rejects(failing, reason);
  t.equal(calls, 1);
  t.same(pending(), []);
  await t.rejects(
    retry(() => t.fail('never called'), { backoff, signal: controller.signal }),
    reason,
  );
});

t.test('the default sleep rejects with the reason of the abort', async (t) => {
  const controller = new AbortController();
  const reason = new Error('stopping');
  const failing = retry(() => Promise.reject(new Error('no')), {
    backoff: { initialMs: 3_600_000, maxMs: 3_600_000 },
    signal: controller.signal,
    onRetry: () => setImmediate(() => controller.abort(reason)),
  });
  await t.rejects(failing, reason);
});
