// `make bench-auth`: what requests to the user authentication server cost.
import { runPageBench } from '../run-page-bench.ts';
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

await runPageBench({
  helpText,
  durations: { full: { warmUpMs: 3000, durationMs: 6000 }, quick: { warmUpMs: 300, durationMs: 600 } },
  company: postgresCompany,
  run: runAuthBench,
  format: formatAuthBench,
  write: writeAuthPage,
});
