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

const kinds = [
  { name: 'fixed_window', algorithm: 'fixed_window' },
  { name: 'token_bucket', algorithm: 'token_bucket' },
  { name: 'sliding_window', algorithm: 'sliding_window' },
  { name: 'fixed_window, atomic', algorithm: 'fixed_window', atomic: true },
];

const scenarios = [
  { name: 'one hot key', keys: 1 },
  { name: '10,000 keys', keys: 10_000 },
];

/** Decisions per second over Redis of each algorithm, beside fixed windows in the same rounds. */
export async function measureAlgorithms({ quick, nodeFlags, progress }: BenchOptions): Promise<Table> {
  await using cleanup = new AsyncDisposableStack();
  const limiters: { readonly name: string; readonly limiter: Limiter }[] = [];
  for (const { name, ...rules } of kinds) {
    const folder = temporaryFolder();
    cleanup.defer(folder.remove);
    replaceRules(folder.path, writeRules(10, rules));
    const options = { program: undefined, nodeFlags, runtimeRoot: folder.path, cleanup };
    const limiter = await startLimiter('Redis', options);
    await checkDecision(limiter.address);
    limiters.push({ name, limiter });
  }
  const rows: string[][] = [];
  const seconds = (count: number) => count * (quick ? 100 : 1000);
  const rounds = quick ? 4 : 5;
  for (const { name: scenario, keys } of scenarios) {
    progress(`algorithms over Redis, ${scenario}, ${rounds} rounds`);
    const load = { path: shouldRateLimitPath, messages: writeRequests(keys), connections, streams };
    for (const { limiter } of limiters) await measureMaximum(limiter, { ...load, durationMs: seconds(2) });
    const results = await takeTurns(limiters, rounds, ({ limiter }) =>
      measureMaximum(limiter, { ...load, durationMs: seconds(1) }),
    );
    const [fixed = []] = results.values();
    const each = (of: readonly Maximum[]) => of.map((run) => run.perSecond);
    for (const [{ name }, runs] of results) {
      rows.push([
        ...[scenario, name, formatCount(perSecond(runs)), formatRatio(each(runs), each(fixed))],
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
