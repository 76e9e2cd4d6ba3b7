import t from 'tap';
import { AccessToken, Client } from '../../src/index.ts';
import { monotonicClock } from '../monotonic-clock.ts';

function makeClient() {
  const clock = { now: 1_800_000_000 };
  return { clock, client: new Client({ site: 'https://as.test', now: () => clock.now }) };
}

t.test('a token expires after its lifetime although the clock is set back', async (t) => {
  const monotonic = monotonicClock(t);
  const { client, clock } = makeClient();
  const token = AccessToken.fromHash(client, { access_token: 'at', expires_in: 600 });
  clock.now -= 7200;
  monotonic.advance(590);
  t.same([token.expired(), token.expiresWithin(5), token.expiresWithin(10)], [false, false, true]);
  monotonic.advance(10);
  t.equal(token.expired(), true);
});

t.test('a token that was valid when the machine was suspended has expired by the wall clock', async (t) => {
  const { client, clock } = makeClient();
  const token = AccessToken.fromHash(client, { access_token: 'at', expires_in: 600 });
  clock.now += 600;
  t.equal(token.expired(), true);
  t.equal(token.secondsLeft(), 0);
});

t.test('a stored token is valid for its lifetime at most when the clock was set back', async (t) => {
  const monotonic = monotonicClock(t);
  const { client, clock } = makeClient();
  const issued = AccessToken.fromHash(
    client,
    { access_token: 'at', expires_in: 600 },
    { expiresLatency: 60 },
  );
  const stored = issued.toStored();
  t.same(stored, { access_token: 'at', expires_at: clock.now + 540, expires_in: 540 });
  clock.now += 300;
  t.same(AccessToken.fromHash(client, stored).toStored(), stored, 'restoring does not change it');
  clock.now -= 7200;
  const restored = AccessToken.fromHash(client, stored);
  t.ok(restored.secondsLeft() <= 540);
  monotonic.advance(540);
  t.equal(restored.expired(), true);
});

t.test('a stored token with only a time of expiry has a lifetime, too', async (t) => {
  const { client, clock } = makeClient();
  const token = AccessToken.fromHash(client, { access_token: 'at', expires_at: clock.now + 600 });
  t.equal(token.toStored().expires_in, 600);
  t.equal(AccessToken.fromHash(client, { access_token: 'at' }).toStored().expires_in, undefined);
});

t.test('expires_in 0.5 is half a second', async (t) => {
  const { client, clock } = makeClient();
  clock.now += 0.7;
  const token = AccessToken.fromHash(client, { access_token: 'at', expires_in: 0.5 });
  t.same([token.expires, token.expiresIn, token.expired()], [true, 0.5, false]);
  clock.now += 0.5;
  t.equal(token.expired(), true);
  t.equal(AccessToken.fromHash(client, { access_token: 'at', expires_in: '-0.5' }).expired(), true);
});

t.test('a token that does not expire has no end', async (t) => {
  const { client } = makeClient();
  const token = AccessToken.fromHash(client, { access_token: 'at', expires_in: 0 });
  t.same([token.secondsLeft(), token.expired()], [Number.POSITIVE_INFINITY, false]);
});
