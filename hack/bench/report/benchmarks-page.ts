import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MachineFacts } from '../machine-facts.ts';
import { fullTimes } from '../measure-decisions.ts';
import type { BenchOptions } from '../options.ts';
import type { BenchResults } from '../run-bench.ts';
import { columnNotes, decisionColumns, rulesColumns, standAloneColumns } from './columns.ts';
import { formatFacts } from './format-facts.ts';
import { formatMarkdownTable } from './format-table.ts';

const page = 'docs/benchmarks.md';
const root = join(import.meta.dirname, '../../..');

/** Writes docs/benchmarks.md and answers its path within the repository. */
export function writeBenchmarksPage(
  results: BenchResults,
  options: BenchOptions,
  facts: MachineFacts,
): string {
  writeFileSync(join(root, page), formatBenchmarksPage(results, options, facts));
  return page;
}

/** Writes the page: the command, the machine, the tables and how to read them. */
export function formatBenchmarksPage(
  { decisions, rules, standAlone }: BenchResults,
  options: BenchOptions,
  facts: MachineFacts,
): string {
  return `# Benchmarks

Written by \`make bench ARGS=--write\` (hack/bench); do not edit by hand.

${formatFacts(facts)}.

## Decisions

${options.connections} connections with ${options.streams} calls in flight each for the maximum (${seconds(fullTimes.warmUpMs)} to warm up, ${seconds(fullTimes.maximumMs)} measured),
then ${options.rate.toLocaleString('en-US')} calls/s for ${seconds(fullTimes.fixedRateMs)}. Each call asks for two descriptors, each with a counter of its own.

${formatMarkdownTable(decisionColumns, decisions)}

## Rules

In the running service:

${formatMarkdownTable(rulesColumns, rules)}

Without the service (\`node packages/rules/bench/main.ts\`):

${formatMarkdownTable(standAloneColumns, standAlone)}

## How to read them

${columnNotes.map((note) => `- ${note}`).join('\n')}
- The service, Redis and the load generator share the cores above: what the generator and Redis use, the service lacks. CPU µs hardly depends on that.
- Requests are the same with 10 and with 100,000 rules; the other rules are siblings of those that match.
`;
}

function seconds(ms: number): string {
  return `${ms / 1000} s`;
}
