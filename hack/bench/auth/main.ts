// `make bench-auth`: what requests to the user authentication server cost.
import { readMachineFacts } from '../machine-facts.ts';
import { parsePageOptions } from '../page-options.ts';
import { formatFacts } from '../report/format-facts.ts';
import { postgresCompany } from './postgres-company.ts';
import { formatAuthBench, runAuthBench } from './run-auth-bench.ts';
import { writeAuthPage } from './write-auth-page.ts';

const helpText = `make bench-auth ARGS="..."       or: node hack/bench/auth/main.ts ...

Starts services/auth with a PostgreSQL of its own and measures it over loopback: requests a second, latency,
CPU of the server for each, and how long others wait while passwords are checked.

  --quick  a tenth of the time: for trying, not for comparing
  --write  write docs/benchmarks-auth.md (full time)
  --help   print this
`;

const options = parsePageOptions(process.argv.slice(2));
if (options.kind === 'help') {
  process.stdout.write(helpText);
} else if (options.kind === 'wrong') {
  process.stderr.write(`bench: ${options.problem}\nbench: --help lists what it takes\n`);
  process.exitCode = 2;
} else {
  const facts = readMachineFacts();
  const company = await postgresCompany();
  const duration = options.quick ? { warmUpMs: 300, durationMs: 600 } : { warmUpMs: 3000, durationMs: 6000 };
  const report = await runAuthBench(duration, (text) => process.stderr.write(text));
  process.stdout.write(`\n${formatFacts(facts, company)}\n\n${formatAuthBench(report)}\n`);
  if (options.write) process.stdout.write(`written: ${writeAuthPage(report, facts, company)}\n`);
}
