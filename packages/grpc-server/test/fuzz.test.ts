import t from 'tap';
import { checkEverySplit, moduleChecks } from './support/fuzz/module-fuzzer.ts';
import { Random } from './support/fuzz/random.ts';
import { joinFrames, readRecordings } from './support/fuzz/recordings.ts';
import { ServerFuzzer } from './support/fuzz/server-fuzzer.ts';

// Seeds are the same each time: a failure is due to a change. `make fuzz` tries others, for longer.
const seeds = Array.from({ length: 400 }, (_, index) => index + 1);
const batches = 40;
const recordings = readRecordings();

for (const [name, check] of Object.entries(moduleChecks)) {
  t.test(`damaged input: ${name}`, async (t) => {
    for (const seed of seeds) {
      // Lets connections end that earlier cases have left.
      if (seed % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      try {
        check(new Random(seed), recordings);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
    t.pass(`${seeds.length} cases`);
  });
}

t.test('a session has the same replies wherever its bytes are split', async (t) => {
  for (const { name, frames } of recordings) {
    t.doesNotThrow(() => checkEverySplit(joinFrames(frames)), name);
  }
});

t.test('a server survives damaged sessions, frees what they used, and serves others', async (t) => {
  const fuzzer = new ServerFuzzer();
  t.teardown(() => fuzzer.close());
  await fuzzer.start();
  for (let seed = 1; seed <= batches; seed++) await fuzzer.runBatch(seed);
  t.equal(fuzzer.batches, batches);
});
