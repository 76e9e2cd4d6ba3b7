import t from 'tap';
import { createReconnectPauses } from '../../../src/rule-sources/xds/reconnect-pauses.ts';

const defaults = { connectRetryMs: 3_000, initialMs: 10_000, maxMs: 60_000, spread: 0.5 };
const middle = () => 0.5;

const lost = { connected: true, delivered: true };
const unreachable = { connected: false, delivered: false };
const refused = { connected: true, delivered: false };

t.test(
  'a lost server is tried again soon; one that stays away gets pauses that double up to the largest',
  async (t) => {
    const pauseAfter = createReconnectPauses(defaults, middle);
    const outage = [lost, ...Array.from({ length: 7 }, () => unreachable)];
    t.same(outage.map(pauseAfter), [3_000, 3_000, 3_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  },
);

t.test(
  'a server that ends streams without sending anything gets pauses that double from the start',
  async (t) => {
    const pauseAfter = createReconnectPauses(defaults, middle);
    t.same([refused, refused, refused].map(pauseAfter), [10_000, 20_000, 40_000]);
    t.equal(pauseAfter(unreachable), 60_000, 'and they do not shrink because it has gone');
  },
);

t.test('no pause is longer than a timer can wait', async (t) => {
  const connectRetryMs = 480 * 3_600_000;
  const pauseAfter = createReconnectPauses({ ...defaults, connectRetryMs }, () => 0.999);
  t.equal(pauseAfter(lost), 2 ** 31 - 1);
});

t.test('a stream that delivered something starts anew', async (t) => {
  const pauseAfter = createReconnectPauses(defaults, middle);
  for (let i = 0; i < 9; i++) pauseAfter(refused);
  t.equal(pauseAfter(lost), 3_000);
  for (let i = 0; i < 9; i++) t.equal(pauseAfter(lost), 3_000, 'however often it is lost');
});

t.test('short pauses are spread by half, growing ones by the factor, none above the largest', async (t) => {
  for (const [drawn, short, grown] of [
    [0, 1_500, 5_000],
    [1, 4_500, 15_000],
  ] as const) {
    const pauseAfter = createReconnectPauses(defaults, () => drawn);
    t.equal(pauseAfter(lost), short);
    t.equal(pauseAfter(refused), grown);
    for (let i = 0; i < 9; i++) t.ok(pauseAfter(refused) <= 60_000);
  }
  const without = createReconnectPauses({ ...defaults, spread: 0 }, () => 1);
  t.equal(without(refused), 10_000);
});

t.test('with a retry interval above the first growing pause there is one short pause', async (t) => {
  const pauseAfter = createReconnectPauses({ ...defaults, connectRetryMs: 30_000 }, middle);
  t.same([lost, unreachable, unreachable].map(pauseAfter), [30_000, 10_000, 20_000]);
});
