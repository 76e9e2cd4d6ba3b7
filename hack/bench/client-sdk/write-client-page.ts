import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMarkdownTable } from '../report/format-table.ts';
import { type ClientBenchReport, clientBenchTables } from './run-client-bench.ts';

const page = 'docs/benchmarks-client-sdk.md';
const root = join(import.meta.dirname, '../../..');

/** Writes docs/benchmarks-client-sdk.md and answers its path within the repository. */
export function writeClientPage(report: ClientBenchReport, facts: string): string {
  const tables = clientBenchTables(report, formatMarkdownTable)
    .map(({ title, table }) => `## ${title}\n\n${table}`)
    .join('\n\n');
  writeFileSync(
    join(root, page),
    `# Benchmarks of the OAuth 2.0 client

Written by \`make bench-client ARGS=--write\` (hack/bench/client-sdk); do not edit by hand. All contestants ran in
turns in one run, each in a process of its own, as a library is in an application.

${facts}.

${tables}
`,
  );
  return page;
}
