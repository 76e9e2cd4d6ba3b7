import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const repository = join(import.meta.dirname, '../..');

/** Cells are laid out as they are; columns of numbers are aligned to the right. */
export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly notes?: readonly string[];
}

/** Result of a benchmark. */
export interface Report {
  /** Below `docs`. */
  readonly page: string;
  readonly title: string;
  /** Markdown above the tables. */
  readonly intro: string;
  /** Programs that shared the cores, those of others with their versions. */
  readonly sharedBy: string;
  readonly programs: readonly string[];
  readonly tables: readonly Table[];
}

/** Options of all benchmarks. */
export interface BenchOptions {
  /** A tenth of the time. */
  readonly quick: boolean;
  /** Whether the page in `docs` is written. */
  readonly write: boolean;
  /** Flags of Node for the services. */
  readonly nodeFlags: readonly string[];
  /** Called before each measurement. */
  readonly progress: (what: string) => void;
}

/** For a terminal. */
export function formatReport(report: Report, machine: string): string {
  const tables = report.tables.map(({ title, notes = [], ...table }) => {
    const lines = padCells(table).map((cells) => cells.join('  ').trimEnd());
    return [title, ...lines, ...notes.map((note) => `  ${note}`), ''].join('\n');
  });
  return `${report.title}\n${machine}\n\n${tables.join('\n')}`;
}

/** Without the columns that a busy machine distorts most. */
export function omitTails(report: Report): Report {
  const tables = report.tables.map((table): Table => {
    let follows = false;
    // Columns such as `peer` belong to the one before.
    const kept = table.head.map((name) => {
      follows = /\b(?:p99|max|pause)\b/.test(name) || (follows && !name.includes(' '));
      return !follows;
    });
    const keep = (cells: readonly string[]) => cells.filter((_, column) => kept[column]);
    return { ...table, head: keep(table.head), rows: table.rows.map(keep) };
  });
  const note = 'The machine was busy: p99 and maximum are left out, and only ratios are comparable.';
  return { ...report, intro: `${report.intro}\n\n${note}`, tables };
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
  return rows.every((cells) => /^(?:-?[\d,.]+(?: \([\d.–]+\))?|–)$/.test(cells[column] ?? ''));
}

/** `12,345`. */
export function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Formats units of 10⁶ bytes. */
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

/** Result of a load generator. */
export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  /** From the request until the end of its response. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The result of a load with one latency for each request. */
export function summarize(latenciesMs: readonly number[], durationMs: number): LoadResult {
  return {
    requests: latenciesMs.length,
    perSecond: (latenciesMs.length * 1000) / durationMs,
    p50Ms: percentile(latenciesMs, 50),
    p99Ms: percentile(latenciesMs, 99),
  };
}

/** The middle value; the lower one of two. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}
