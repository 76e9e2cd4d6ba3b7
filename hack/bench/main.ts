// `make bench`: measures services/ratelimit on this machine and prints a table. See options.ts for what it takes.
import { readMachineFacts } from './machine-facts.ts';
import { helpText, parseOptions } from './options.ts';
import { runBench } from './run-bench.ts';

const parsed = parseOptions(process.argv.slice(2));
if (parsed.kind === 'help') {
  process.stdout.write(helpText);
} else if (parsed.kind === 'wrong') {
  for (const problem of parsed.problems) process.stderr.write(`bench: ${problem}\n`);
  process.stderr.write('bench: --help lists what it takes\n');
  process.exitCode = 2;
} else {
  // What was started is ended on exit, whatever the reason.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(130));
  try {
    const sound = await runBench(parsed.options, {
      facts: readMachineFacts(),
      print: (text) => process.stdout.write(`${text}\n`),
      progress: (text) => process.stderr.write(text),
    });
    if (!sound) process.exitCode = 1;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`\nbench: ${message}\n`);
    process.exitCode = 1;
  }
}
