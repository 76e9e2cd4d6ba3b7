import t from 'tap';
import { ReconnectBackoff } from '../src/reconnect-backoff.ts';

const defaults = { connectRetryMs: 3_000, initialMs: 10_000, maxMs: 60_000, jitter: 0.5 };
const middle = () => 0.5;

const lost = { connected: true, delivered: true };
const unreachable = { connected: false, delivered: false };
const refused = { connected: true, delivered: false };

t.test('an unreachable server is retried within five seconds, however long it is away', async (t) => {
  for (const drawn of [0, 0.5, 1]) {
    const backoff = new ReconnectBackoff(defaults, () => drawn);
    const outage = [lost, ...Array.from({ length: 100 }, () => unreachable)].map((ended) =>
      backoff.delayAfterMs(ended),
    );
    t.same(new Set(outage), new Set([1_500 + drawn * 3_000]));
  }
});

t.test('a server that ends streams without a response gets a growing backoff', async (t) => {
  const backoff = new ReconnectBackoff(defaults, middle);
  const pauses = [refused, refused, refused, refused, refused].map((ended) => backoff.delayAfterMs(ended));
  t.same(pauses, [10_000, 20_000, 40_000, 60_000, 60_000]);
  t.equal(backoff.delayAfterMs(unreachable), 3_000, 'until it restarts');
  t.equal(backoff.delayAfterMs(refused), 10_000);
});

t.test('pauses are limited to the maximum of a timer', async (t) => {
  const connectRetryMs = 480 * 3_600_000;
  const backoff = new ReconnectBackoff({ ...defaults, connectRetryMs }, () => 0.999);
  t.equal(backoff.delayAfterMs(lost), 2 ** 31 - 1);
});

t.test('a stream with a response resets the backoff', async (t) => {
  const backoff = new ReconnectBackoff(defaults, middle);
  for (let i = 0; i < 9; i++) backoff.delayAfterMs(refused);
  t.equal(backoff.delayAfterMs(lost), 3_000);
  for (let i = 0; i < 9; i++) t.equal(backoff.delayAfterMs(lost), 3_000, 'however often it is lost');
});

t.test('short pauses have 50 % jitter, growing ones the configured one, up to the maximum', async (t) => {
  for (const [drawn, short, grown] of [
    [0, 1_500, 5_000],
    [1, 4_500, 15_000],
  ] as const) {
    const backoff = new ReconnectBackoff(defaults, () => drawn);
    t.equal(backoff.delayAfterMs(lost), short);
    t.equal(backoff.delayAfterMs(refused), grown);
    for (let i = 0; i < 9; i++) t.ok(backoff.delayAfterMs(refused) <= 60_000);
  }
  const without = new ReconnectBackoff({ ...defaults, jitter: 0 }, () => 1);
  t.equal(without.delayAfterMs(refused), 10_000);
});
