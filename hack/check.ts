// `npm run check`: format, lint, types and texts. Prints a table, and the output of what failed.
// `--verbose` lists warnings, too.
import { availableParallelism } from 'node:os';
import { checks } from './check/checks.ts';
import { formatResults, runChecks } from './check/run-checks.ts';

const results = await runChecks(checks, { concurrency: Math.max(2, availableParallelism()) });
process.stdout.write(formatResults(results, { verbose: process.argv.includes('--verbose') }));
if (results.some((result) => !result.ok)) process.exitCode = 1;
