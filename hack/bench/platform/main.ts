// `make bench-platform`: what external authorization costs, and what both filters add to a request through Envoy.
import { execFileSync } from 'node:child_process';
import { findBinary } from '@tollgate/testkit/binary';
import { runPageBench } from '../run-page-bench.ts';
import { formatPlatformBench, runPlatformBench } from './run-platform-bench.ts';
import { writePlatformPage } from './write-platform-page.ts';

const helpText = `make bench-platform ARGS="..."       or: node hack/bench/platform/main.ts ...

Starts services/auth with a PostgreSQL of its own, services/ratelimit and Envoy, and measures over loopback: Checks a
second and the CPU of each, then requests a second and latency through Envoy with and without Tollgate's filters.

  --quick  a tenth of the time: for trying, not for comparing
  --write  write docs/benchmarks-platform.md (full time)
  --help   print this
`;

await runPageBench({
  helpText,
  durations: { full: { warmUpMs: 3000, durationMs: 6000 }, quick: { warmUpMs: 300, durationMs: 600 } },
  company: () => ({
    sharedBy: 'services, PostgreSQL, Envoy and the load',
    programs: [`Envoy ${envoyVersion()}`],
  }),
  run: runPlatformBench,
  format: formatPlatformBench,
  write: writePlatformPage,
});

function envoyVersion(): string {
  const text = execFileSync(findBinary('envoy'), ['--version'], { encoding: 'utf8' });
  return /\d+\.\d+\.\d+/.exec(text)?.[0] ?? 'unknown';
}
