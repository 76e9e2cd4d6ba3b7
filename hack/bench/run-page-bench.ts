import { readMachineFacts } from './machine-facts.ts';
import { parsePageOptions } from './page-options.ts';
import { type Company, formatFacts } from './report/format-facts.ts';

/** A bench that is measured as a whole and has a page of its own in docs. */
export interface PageBench<Duration, Report> {
  readonly helpText: string;
  /** How long, in full and for trying. */
  readonly durations: { readonly full: Duration; readonly quick: Duration };
  /** What shares the machine with what is measured; Redis when absent. */
  readonly company?: () => Company | Promise<Company>;
  run(duration: Duration, progress: (text: string) => void): Promise<Report>;
  /** Lays a report out for a terminal. */
  format(report: Report): string;
  /** Writes the page, with a line about the machine, and answers its path within the repository. */
  write(report: Report, facts: string): string;
}

/** Does what the command line asks for; sets the exit code 2 where it asks for nothing that there is. */
export async function runPageBench<Duration, Report>(bench: PageBench<Duration, Report>): Promise<void> {
  const options = parsePageOptions(process.argv.slice(2));
  if (options.kind === 'help') {
    process.stdout.write(bench.helpText);
    return;
  }
  if (options.kind === 'wrong') {
    process.stderr.write(`bench: ${options.problem}\nbench: --help lists what it takes\n`);
    process.exitCode = 2;
    return;
  }
  // Before anything is started, which would count as other work.
  const facts = formatFacts(readMachineFacts(), await bench.company?.());
  const { full, quick } = bench.durations;
  const report = await bench.run(options.quick ? quick : full, (text) => process.stderr.write(text));
  process.stdout.write(`\n${facts}\n\n${bench.format(report)}\n`);
  if (options.write) process.stdout.write(`written: ${bench.write(report, facts)}\n`);
}
