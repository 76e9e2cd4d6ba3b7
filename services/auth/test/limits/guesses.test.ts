import t from 'tap';
import { clientNetwork } from '../../src/http/request-metadata.ts';
import { accountWaitMs, isFreshCode, networkWaitMs } from '../../src/limits/guesses.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

t.test('network of an address is its /24 or /64, in any notation', (t) => {
  const networks: Readonly<Record<string, string>> = {
    '192.0.2.77': '192.0.2.0/24',
    '::ffff:192.0.2.77': '192.0.2.0/24',
    '::FFFF:192.0.2.77': '192.0.2.0/24',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:DB8:0001:2::9': '2001:db8:1:2::/64',
    '2001:db8::': '2001:db8:0:0::/64',
    '2001:db8::1:2:3:4:5': '2001:db8:0:1::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '::1': '0:0:0:0::/64',
    '64:ff9b::192.0.2.1': '64:ff9b:0:0::/64',
  };
  for (const [address, network] of Object.entries(networks))
    t.equal(clientNetwork(address), network, address);
  t.end();
});

t.test('the delay of a network doubles from a minute up to an hour, and ends after a day', (t) => {
  const limit = {
    guesses: 10,
    forgetMs: 10 * minuteMs,
    rememberMs: 24 * hourMs,
    firstDelayMs: minuteMs,
    maxDelayMs: hourMs,
  };
  const wait = (count: number, elapsedMs: number) => networkWaitMs({ count, lastMs: 0 }, limit, elapsedMs);
  t.equal(networkWaitMs(undefined, limit, 0), 0);
  t.equal(wait(9, 0), 0);
  t.same(
    [10, 11, 12, 15, 16, 17, 5000].map((count) => wait(count, 0) / minuteMs),
    [1, 2, 4, 32, 60, 60, 60],
  );
  t.equal(wait(11, minuteMs), minuteMs);
  t.equal(wait(11, 2 * minuteMs), 0);
  t.equal(wait(5000, 24 * hourMs), 0);
  t.end();
});

t.test('a code is fresh until it is guessed wrongly for the first time', (t) => {
  const last = { count: 1, lastMs: 100 };
  t.equal(isFreshCode(undefined, last, 200), false);
  t.equal(isFreshCode(99, last, 200), false);
  t.equal(isFreshCode(100, last, 200), false);
  t.equal(isFreshCode(101, last, 200), true);
  t.equal(isFreshCode(101, undefined, 200), true);
  t.equal(isFreshCode(201, last, 200), false, 'future time');
  t.end();
});

t.test('wrong guesses of an account drain one by one', (t) => {
  const limit = { guesses: 100, periodMs: hourMs };
  const wait = (count: number, elapsedMs: number) => accountWaitMs({ count, lastMs: 0 }, limit, elapsedMs);
  t.equal(accountWaitMs(undefined, limit, 0), 0);
  t.equal(wait(99, 0), 0);
  t.equal(wait(100, 0), 36_000);
  t.equal(wait(100, 36_000), 0);
  t.equal(wait(100.5, 36_000), 18_000);
  t.end();
});
