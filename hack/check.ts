// `npm run check`: everything about the code that needs no test. Prints a table and, below it, what is wrong.
import { availableParallelism } from 'node:os';
import { checks } from './check/checks.ts';
import { formatResults, runChecks } from './check/run-checks.ts';

const results = await runChecks(checks, { concurrency: Math.max(2, availableParallelism()) });
process.stdout.write(formatResults(results));
if (results.some((result) => !result.ok)) process.exitCode = 1;
