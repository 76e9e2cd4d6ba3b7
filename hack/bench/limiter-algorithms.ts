import { temporaryFolder } from '@tollgate/testkit/folders';
import {
  checkDecision,
  connections,
  type Limiter,
  type Maximum,
  measureMaximum,
  perSecond,
  shouldRateLimitPath,
  startLimiter,
  streams,
  writeRequests,
} from './limiter-service.ts';
import { type BenchOptions, formatCount, median, type Table } from './report.ts';
import { replaceRules, writeRules } from './rules-file.ts';
import { formatRatio, takeTurns } from './turns.ts';

const algorithms = ['fixed_window', 'token_bucket', 'sliding_window'];

const scenarios = [
  { name: 'one hot key', keys: 1 },
  { name: '10,000 keys', keys: 10_000 },
];

/** Decisions per second over Redis of each algorithm, beside fixed windows in the same rounds. */
export async function measureAlgorithms({ quick, nodeFlags, progress }: BenchOptions): Promise<Table> {
  await using cleanup = new AsyncDisposableStack();
  const limiters: { readonly algorithm: string; readonly limiter: Limiter }[] = [];
  for (const algorithm of algorithms) {
    const folder = temporaryFolder();
    cleanup.defer(folder.remove);
    replaceRules(folder.path, writeRules(10, { algorithm }));
    const options = { program: undefined, nodeFlags, runtimeRoot: folder.path, cleanup };
    const limiter = await startLimiter('Redis', options);
    await checkDecision(limiter.address);
    limiters.push({ algorithm, limiter });
  }
  const rows: string[][] = [];
  const seconds = (count: number) => count * (quick ? 100 : 1000);
  const rounds = quick ? 4 : 7;
  for (const { name, keys } of scenarios) {
    progress(`algorithms over Redis, ${name}, ${rounds} rounds`);
    const load = { path: shouldRateLimitPath, messages: writeRequests(keys), connections, streams };
    for (const { limiter } of limiters) await measureMaximum(limiter, { ...load, durationMs: seconds(2) });
    const results = await takeTurns(limiters, rounds, ({ limiter }) =>
      measureMaximum(limiter, { ...load, durationMs: seconds(1) }),
    );
    const [fixed = []] = results.values();
    const each = (of: readonly Maximum[]) => of.map((run) => run.perSecond);
    for (const [{ algorithm }, runs] of results) {
      rows.push([
        ...[name, algorithm, formatCount(perSecond(runs)), formatRatio(each(runs), each(fixed))],
        median(runs.map(({ cpuMicros }) => cpuMicros)).toFixed(1),
        median(runs.map(({ redisMicros }) => redisMicros ?? Number.NaN)).toFixed(1),
      ]);
    }
  }
  return {
    title: 'Algorithms over Redis',
    head: ['requests', 'algorithm', 'decisions/s', 'ratio', 'CPU µs', 'Redis µs'],
    rows,
    notes: [
      'ratio: decisions per second to those of fixed windows in the same rounds: median, least and most',
    ],
  };
}
