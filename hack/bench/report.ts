import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';

/** Other work that takes more of a core than this shows in the numbers. */
const busyLoad = 0.5;

const repository = join(import.meta.dirname, '../..');

/** Cells are laid out as they are; columns of numbers are aligned to the right. */
export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly notes?: readonly string[];
}

/** What every benchmark results in. */
export interface Report {
  /** Below `docs`. */
  readonly page: string;
  readonly title: string;
  /** Markdown above the tables. */
  readonly intro: string;
  /** What shared the cores with what was measured, and programs of others with their versions. */
  readonly sharedBy: string;
  readonly programs: readonly string[];
  readonly tables: readonly Table[];
}

/** What all benchmarks take. */
export interface BenchOptions {
  /** A tenth of the time. */
  readonly quick: boolean;
  /** Flags of Node for the services. */
  readonly nodeFlags: readonly string[];
  /** Called before each measurement. */
  readonly progress: (what: string) => void;
}

/** The load average before a benchmark starts anything. */
export function machineLoad(): number {
  return loadavg()[0] ?? 0;
}

/** One line about the machine and the programs, without names of hosts or users. */
export function formatMachine({ sharedBy, programs }: Report, load: number): string {
  return [
    `${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? 'unknown'} (shared by ${sharedBy})`,
    `${Math.round(totalmem() / 1e9)} GB`,
    `Linux ${release()}`,
    `Node ${process.versions.node}`,
    ...programs,
    ...(load > busyLoad ? [`busy with other work before the run (load ${load.toFixed(1)})`] : []),
    new Date().toISOString().slice(0, 10),
  ].join(', ');
}

/** For a terminal. */
export function formatReport(report: Report, machine: string): string {
  const tables = report.tables.map(({ title, notes = [], ...table }) => {
    const lines = padCells(table).map((cells) => cells.join('  ').trimEnd());
    return [title, ...lines, ...notes.map((note) => `  ${note}`), ''].join('\n');
  });
  return `${report.title}\n${machine}\n\n${tables.join('\n')}`;
}

/** Writes the page in `docs` and returns its path in the repository. */
export function writePage(report: Report, machine: string): string {
  const path = `docs/${report.page}`;
  writeFileSync(join(repository, path), formatPage(report, machine));
  return path;
}

/** The page, formatted as `make format` would. */
export function formatPage({ title, intro, tables }: Report, machine: string): string {
  const sections = tables.map((table) => {
    const [head = [], ...body] = padCells(table);
    const rule = head.map((text, column) =>
      isNumeric(table, column) ? `${'-'.repeat(text.length - 1)}:` : '-'.repeat(text.length),
    );
    const lines = [head, rule, ...body].map((cells) => `| ${cells.join(' | ')} |`);
    const notes = (table.notes ?? []).map((note) => `- ${note}\n`).join('');
    return `## ${table.title}\n\n${lines.join('\n')}\n${notes === '' ? '' : `\n${notes}`}`;
  });
  return `# ${title}\n\n${intro}\n\n${machine}.\n\n${sections.join('\n')}`;
}

type Cells = Pick<Table, 'head' | 'rows'>;

function padCells({ head, rows }: Cells): string[][] {
  const lines = [head, ...rows];
  // The rule of a Markdown table needs three characters.
  const widths = head.map((_, column) => Math.max(3, ...lines.map((cells) => cells[column]?.length ?? 0)));
  return lines.map((cells) =>
    cells.map((text, column) =>
      isNumeric({ head, rows }, column)
        ? text.padStart(widths[column] ?? 0)
        : text.padEnd(widths[column] ?? 0),
    ),
  );
}

function isNumeric({ rows }: Cells, column: number): boolean {
  return rows.every((cells) => /^(?:-?[\d,.]+|–)$/.test(cells[column] ?? ''));
}

/** `12,345`. */
export function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Of 10⁶ bytes. */
export function formatMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

/**
 * The value at or below which `percent` of the samples lie (nearest rank); NaN when there are none.
 */
export function percentile(samples: readonly number[], percent: number): number {
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}
