// `make bench-platform`: what external authorization costs, and what both filters add to a request through Envoy.
import { execFileSync } from 'node:child_process';
import { findBinary } from '@tollgate/testkit/binary';
import { readMachineFacts } from '../machine-facts.ts';
import { parsePageOptions } from '../page-options.ts';
import { formatFacts } from '../report/format-facts.ts';
import { formatPlatformBench, runPlatformBench } from './run-platform-bench.ts';
import { writePlatformPage } from './write-platform-page.ts';

const helpText = `make bench-platform ARGS="..."       or: node hack/bench/platform/main.ts ...

Starts services/auth with a PostgreSQL of its own, services/ratelimit and Envoy, and measures over loopback: Checks a
second and the CPU of each, then requests a second and latency through Envoy with and without Tollgate's filters.

  --quick  a tenth of the time: for trying, not for comparing
  --write  write docs/benchmarks-platform.md (full time)
  --help   print this
`;

const options = parsePageOptions(process.argv.slice(2));
if (options.kind === 'help') {
  process.stdout.write(helpText);
} else if (options.kind === 'wrong') {
  process.stderr.write(`bench: ${options.problem}\nbench: --help lists what it takes\n`);
  process.exitCode = 2;
} else {
  const facts = formatFacts(readMachineFacts(), {
    sharedBy: 'services, PostgreSQL, Envoy and the load',
    programs: [`Envoy ${envoyVersion()}`],
  });
  const duration = options.quick ? { warmUpMs: 300, durationMs: 600 } : { warmUpMs: 3000, durationMs: 6000 };
  const report = await runPlatformBench(duration, (text) => process.stderr.write(text));
  process.stdout.write(`\n${facts}\n\n${formatPlatformBench(report)}\n`);
  if (options.write) process.stdout.write(`written: ${writePlatformPage(report, facts)}\n`);
}

function envoyVersion(): string {
  const text = execFileSync(findBinary('envoy'), ['--version'], { encoding: 'utf8' });
  return /\d+\.\d+\.\d+/.exec(text)?.[0] ?? 'unknown';
}
