import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMarkdownTable } from '../report/format-table.ts';
import { type AuthBenchReport, authBenchTables } from './run-auth-bench.ts';

const page = 'docs/benchmarks-auth.md';
const root = join(import.meta.dirname, '../../..');

/** Writes docs/benchmarks-auth.md and answers its path within the repository. */
export function writeAuthPage(report: AuthBenchReport, facts: string): string {
  const tables = authBenchTables(report, formatMarkdownTable)
    .map(({ title, table }) => `## ${title}\n\n${table}`)
    .join('\n\n');
  writeFileSync(
    join(root, page),
    `# Benchmarks of the user authentication server

Written by \`make bench-auth ARGS=--write\` (hack/bench/auth); do not edit by hand. The server, a PostgreSQL that loses nothing and
the load ran on one machine, tokens signed with HS256, passwords hashed with argon2id.

${facts}.

${tables}
`,
  );
  return page;
}
