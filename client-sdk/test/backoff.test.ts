import t from 'tap';
import { certainlyNeverReachedServer } from '../src/http/connection-failures.ts';
import { backoffDelayMs, sleep } from '../src/timers.ts';

t.test('backoff has full jitter below a bound that doubles up to a limit', (t) => {
  const backoff = { baseDelayMs: 100, maxDelayMs: 1000 };
  t.same(
    [1, 2, 3, 4, 5, 99].map((attempt) => backoffDelayMs(attempt, backoff, 0.999)),
    [99, 199, 399, 799, 999, 999],
  );
  t.equal(backoffDelayMs(3, backoff, 0), 0);
  t.end();
});

t.test('only errors before a connection prove that nothing reached the server', (t) => {
  const coded = (code: string) => Object.assign(new Error(code), { code });
  t.ok(certainlyNeverReachedServer(new TypeError('fetch failed', { cause: coded('ENOTFOUND') })));
  t.ok(certainlyNeverReachedServer(new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')])));
  t.notOk(certainlyNeverReachedServer(new AggregateError([coded('ECONNREFUSED'), coded('ECONNRESET')])));
  t.notOk(certainlyNeverReachedServer(coded('ECONNRESET')));
  const inDeno = (what: string) =>
    new TypeError('fetch failed', {
      cause: new Error(
        `error sending request for url (http://as.test/): client error (${what}): of some kind`,
      ),
    });
  t.ok(certainlyNeverReachedServer(inDeno('Connect')));
  t.notOk(certainlyNeverReachedServer(inDeno('SendRequest')));
  t.notOk(certainlyNeverReachedServer(new TypeError('fetch failed')));
  t.notOk(certainlyNeverReachedServer('ECONNREFUSED'));
  t.end();
});

t.test('a sleep ends when its signal is aborted, also before it began', async (t) => {
  await sleep(0);
  const controller = new AbortController();
  const asleep = sleep(60_000, { signal: controller.signal });
  controller.abort(new Error('up'));
  await t.rejects(asleep, { message: 'up' });
  await t.rejects(sleep(60_000, { signal: controller.signal }), { message: 'up' });
});
