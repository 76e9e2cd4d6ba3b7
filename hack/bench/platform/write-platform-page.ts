import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMarkdownTable } from '../report/format-table.ts';
import { type PlatformBenchReport, platformBenchTables } from './run-platform-bench.ts';

const page = 'docs/benchmarks-platform.md';
const root = join(import.meta.dirname, '../../..');

/** Writes docs/benchmarks-platform.md and answers its path within the repository. */
export function writePlatformPage(report: PlatformBenchReport, facts: string): string {
  const tables = platformBenchTables(report, formatMarkdownTable)
    .map(({ title, table }) => `## ${title}\n\n${table}`)
    .join('\n\n');
  writeFileSync(
    join(root, page),
    `# Benchmarks of the platform

Written by \`make bench-platform ARGS=--write\` (hack/bench/platform); do not edit by hand. Services, Envoy (one worker), its application and
the load ran on one machine; users and their sessions are known to the auth server, as they are from their second request on.

${facts}.

${tables}
`,
  );
  return page;
}
