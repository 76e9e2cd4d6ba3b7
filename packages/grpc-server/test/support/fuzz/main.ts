// `make fuzz`: mutated sessions of real clients against a server, and the modules behind it.
//
//   --seconds=600    how long
//   --seed=1         the first batch; the default differs each time and is printed
//   --batches=1      stops after so many batches
//   --modules        the modules only; --server: the server only
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { moduleChecks } from './module-fuzzer.ts';
import { Random } from './random.ts';
import { readRecordings } from './recordings.ts';
import { FuzzFailure, ServerFuzzer } from './server-fuzzer.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string' },
    batches: { type: 'string' },
    modules: { type: 'boolean', default: false },
    server: { type: 'boolean', default: false },
  },
});
const firstSeed = Number(values.seed ?? Date.now() % 2 ** 32);
const maxBatches = Number(values.batches ?? Number.POSITIVE_INFINITY);
const endMs = performance.now() + 1000 * Number(values.seconds);
/** Cases of each module beside a batch of connections: they cost a hundredth. */
const casesPerModule = 200;
const recordings = readRecordings();
const server = values.modules ? undefined : new ServerFuzzer();
const moduleCases: Record<string, number> = {};

process.stdout.write(`fuzz: seed ${firstSeed}\n`);
await server?.start();
let failed = false;
for (let batch = 0; batch < maxBatches && performance.now() < endMs && !failed; batch++) {
  const seed = firstSeed + batch;
  if (!values.server) failed = !(await fuzzModules(seed));
  await server?.runBatch(seed).catch((error: unknown) => {
    if (!(error instanceof FuzzFailure)) throw error;
    failed = true;
    fail(error.message, seed, error.cases);
  });
  if (batch % 500 === 499)
    process.stdout.write(`fuzz: ${batch + 1} batches, ${JSON.stringify(await server?.memory())}\n`);
}
process.stdout.write(
  `fuzz: ${server?.cases ?? 0} connections, ${JSON.stringify(moduleCases)}, ${JSON.stringify(await server?.memory().catch(() => undefined))}\n`,
);
await server?.close();
process.exit(failed ? 1 : 0);

async function fuzzModules(seed: number): Promise<boolean> {
  for (const [name, check] of Object.entries(moduleChecks)) {
    for (let index = 0; index < casesPerModule; index++) {
      const caseSeed = seed * casesPerModule + index;
      // Closes what the cases left.
      if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      try {
        check(new Random(caseSeed), recordings);
      } catch (error) {
        fail(`${name}: ${error instanceof Error ? error.stack : String(error)}`, seed, { name, caseSeed });
        return false;
      }
    }
    moduleCases[name] = (moduleCases[name] ?? 0) + casesPerModule;
  }
  return true;
}

/** Says how to repeat a failure, and keeps its input. */
function fail(message: string, seed: number, input: unknown): void {
  const file = join(process.cwd(), `fuzz-failure-${seed}.json`);
  const text = JSON.stringify({ message, seed, input }, (_key, value) =>
    value?.type === 'Buffer' ? Buffer.from(value.data).toString('hex') : value,
  );
  writeFileSync(file, text);
  process.stdout.write(
    `fuzz: failed: ${message}\nfuzz: input in ${file}\nfuzz: repeat with make fuzz ARGS='--seed=${seed} --batches=1'\n`,
  );
}
