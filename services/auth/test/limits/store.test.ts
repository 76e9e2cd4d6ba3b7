import t from 'tap';
import { countingServices } from '../helpers/counting-services.ts';
import { metadata, testStore } from '../helpers/test-store.ts';

const start = Date.parse('2026-03-04T05:06:07.089Z');
const hourMs = 3_600_000;
const limits = {
  network: {
    guesses: 2,
    forgetMs: hourMs / 6,
    rememberMs: 24 * hourMs,
    firstDelayMs: hourMs / 60,
    maxDelayMs: hourMs,
  },
  account: { guesses: 4, periodMs: hourMs },
};
const keys = { kind: 'password', account: 'account', network: 'network', knownNetwork: 'known' } as const;

t.test('wrong guesses are counted by network and account, with different retention', async (t) => {
  const { limits: guesses } = await testStore(t);
  t.same(await guesses.readGuesses(keys), {
    network: undefined,
    account: undefined,
    code: undefined,
    codeSentMs: undefined,
    knownSinceMs: undefined,
  });
  await guesses.countWrong(keys, limits, start);
  await guesses.countWrong({ ...keys, network: 'another' }, limits, start);
  t.match(await guesses.readGuesses(keys), {
    network: { count: 1, lastMs: start },
    account: { count: 2, lastMs: start },
  });
  // An account drains one guess per 15 minutes; a network below its limit is reset after 10
  // minutes.
  await guesses.countWrong(keys, limits, start + hourMs / 4);
  t.match(await guesses.readGuesses(keys), { network: { count: 1 }, account: { count: 2 } });
  await guesses.countWrong(keys, limits, start + hourMs / 4);
  await guesses.countWrong(keys, limits, start + 3 * hourMs);
  t.match(await guesses.readGuesses(keys), { network: { count: 3 }, account: { count: 1 } });
});

t.test('late count of an earlier request does not move the time back', async (t) => {
  const { limits: guesses } = await testStore(t);
  await guesses.countWrong(keys, limits, start);
  await guesses.countWrong(keys, limits, start - hourMs);
  t.match(await guesses.readGuesses(keys), {
    network: { count: 2, lastMs: start },
    account: { count: 2, lastMs: start },
  });
});

t.test('right guess resets the wrong guesses of its network only', async (t) => {
  const { limits: guesses } = await testStore(t);
  const other = { ...keys, network: 'another', knownNetwork: 'another' };
  for (const one of [keys, other]) await guesses.countWrong(one, limits, start);
  await guesses.countRight(keys, start + 1);
  t.match(await guesses.readGuesses(keys), {
    network: undefined,
    account: { count: 2 },
    knownSinceMs: start + 1,
  });
  t.match(await guesses.readGuesses(other), { network: { count: 1 }, knownSinceMs: undefined });
});

t.test('concurrent guesses from many networks all count for the account', async (t) => {
  const { limits: guesses } = await testStore(t);
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      guesses.countWrong({ ...keys, network: String(index) }, limits, start),
    ),
  );
  t.match(await guesses.readGuesses(keys), { account: { count: 20 } });
});

t.test('without a network only the account is counted', async (t) => {
  const { limits: guesses } = await testStore(t);
  await guesses.countWrong({ kind: 'password', account: 'account' }, limits, start);
  await guesses.countRight({ kind: 'password', account: 'account' }, start);
  t.match(await guesses.readGuesses(keys), {
    network: undefined,
    account: { count: 1 },
    knownSinceMs: undefined,
  });
});

t.test('guesses of one account run one by one, and too many waiting ones are rejected', async (t) => {
  const { services } = await countingServices(t, {});
  const guess = { kind: 'password', contact: 'ada@example.com' } as const;
  const gate = Promise.withResolvers<void>();
  let running = 0;
  const attempt = async () => {
    t.equal(++running, 1, 'no other guess is running');
    await gate.promise;
    running--;
    return {};
  };
  const tryOnce = () => services.limiter.guess(guess, metadata, attempt);
  const guesses = Array.from({ length: 51 }, tryOnce);
  await t.rejects(tryOnce(), { code: 'over_request_rate_limit', retryAfterSeconds: 2 });
  gate.resolve();
  await Promise.all(guesses);
  t.same(await tryOnce(), {}, 'the next guess need not wait');
});
