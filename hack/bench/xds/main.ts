// `make bench-xds`: how fast edits reach limiters, and what many objects and many limiters cost services/xds.
import { readMachineFacts } from '../machine-facts.ts';
import { formatFacts } from '../report/format-facts.ts';
import { formatTable } from '../report/format-table.ts';
import { kubeCompany } from './kube-company.ts';
import { helpText, parseXdsOptions, type XdsBenchOptions } from './options.ts';
import { runXdsBench } from './run-xds-bench.ts';
import { writeXdsPage } from './xds-page.ts';
import { xdsTables } from './xds-tables.ts';

async function run(options: XdsBenchOptions): Promise<void> {
  const facts = readMachineFacts();
  const report = await runXdsBench(options, (text) => process.stderr.write(text));
  process.stdout.write(`\n${formatFacts(facts, kubeCompany())}\n\n`);
  for (const { title, table, notes } of xdsTables(report, formatTable))
    process.stdout.write(`${title}\n${table}\n${notes.map((note) => `  ${note}\n`).join('')}\n`);
  if (options.write) process.stdout.write(`written: ${writeXdsPage(report, facts)}\n`);
}

const parsed = parseXdsOptions(process.argv.slice(2));
if (parsed.kind === 'help') {
  process.stdout.write(helpText);
} else if (parsed.kind === 'wrong') {
  process.stderr.write(`bench: ${parsed.problem}\nbench: --help lists what it takes\n`);
  process.exitCode = 2;
} else {
  // What was started is ended on exit, whatever the reason.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(130));
  try {
    await run(parsed.options);
  } catch (error) {
    process.stderr.write(
      `\nbench: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = 1;
  }
}
