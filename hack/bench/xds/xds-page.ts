import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MachineFacts } from '../machine-facts.ts';
import { type Company, formatFacts } from '../report/format-facts.ts';
import { formatMarkdownTable } from '../report/format-table.ts';
import { kubeCompany } from './kube-company.ts';
import type { XdsBenchReport } from './run-xds-bench.ts';
import { xdsTables } from './xds-tables.ts';

const page = 'docs/benchmarks-xds.md';
const root = join(import.meta.dirname, '../../..');

/** Writes docs/benchmarks-xds.md and answers its path within the repository. */
export function writeXdsPage(report: XdsBenchReport, facts: MachineFacts): string {
  writeFileSync(join(root, page), formatXdsPage(report, facts, kubeCompany()));
  return page;
}

/** Writes the page: the command, the machine, and the tables with how to read them. */
export function formatXdsPage(report: XdsBenchReport, facts: MachineFacts, company: Company): string {
  const sections = xdsTables(report, formatMarkdownTable).map(
    ({ title, table, notes }) =>
      `## ${title}\n\n${table}\n\n${notes.map((note) => `- ${note}`).join('\n')}\n`,
  );
  return `# Benchmarks of the management server

Written by \`make bench-xds ARGS=--write\` (hack/bench/xds); do not edit by hand. Everything was measured in one run.

${formatFacts(facts, company)}.

All settings are the defaults (limiters are told of an edit 5 ms after the first event of it), but for the pauses of limiters
between attempts to connect.

${sections.join('\n')}`;
}
