import t from 'tap';
import { compare } from '../compare.ts';
import { measureRound, type RoundOptions } from '../measure-round.ts';

const inThisProcess = (name: string, run: () => Promise<void>) => ({
  name,
  measure: (options: RoundOptions) => measureRound(run, options),
});

t.test('contestants take turns, and are measured against the first', async (t) => {
  const turns: string[] = [];
  const contestant = (name: string) =>
    inThisProcess(name, async () => {
      if (turns.at(-1) !== name) turns.push(name);
    });
  const results = await compare([contestant('a'), contestant('b')], {
    warmUpRounds: 1,
    rounds: 2,
    roundMs: 1,
    concurrency: 1,
  });
  // Three rounds, a b, b a, a b: who ends one starts the next.
  t.same(turns, ['a', 'b', 'a', 'b']);
  t.match(results, [{ name: 'a', ratio: 1 }, { name: 'b' }]);
  for (const { callsPerSecond, cpuMicros } of results) {
    t.ok(callsPerSecond > 0);
    t.ok(cpuMicros > 0);
  }
});

t.test('as many calls are in flight as were asked for', async (t) => {
  let inFlight = 0;
  let most = 0;
  const run = async () => {
    most = Math.max(most, ++inFlight);
    await new Promise((resolve) => setImmediate(resolve));
    inFlight--;
  };
  await compare([inThisProcess('a', run)], { warmUpRounds: 1, rounds: 1, roundMs: 2, concurrency: 4 });
  t.equal(most, 4);
});

t.test('a contestant that fails fails the comparison', async (t) => {
  const run = () => Promise.reject(new Error('no token'));
  await t.rejects(
    compare([inThisProcess('a', run)], { warmUpRounds: 1, rounds: 1, roundMs: 1, concurrency: 1 }),
    /no token/,
  );
});
