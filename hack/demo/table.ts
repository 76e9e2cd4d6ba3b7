import { type Answer, describe, guessCause, judge } from './judge.ts';
import type { Row, Step } from './scenario.ts';

/** Colours a text, where the output has colours. */
export type Paint = (style: 'bold' | 'dim' | 'green' | 'red', text: string) => string;

/** Lays out the rows of a scenario in columns of one width, so that each can be printed as soon as it is known. */
export interface Table {
  readonly head: string;
  title(step: Step): string;
  /** Lines of a row: itself, and what is wrong with it. */
  row(row: Row, answer: Answer): string[];
  /** Lines of a row that got no answer. */
  unanswered(row: Row, reason: string): string[];
}

const titles = [
  '',
  'request',
  'header',
  'status',
  'RateLimit-Limit',
  '-Remaining',
  '-Reset',
  'limited by',
  'expected',
];

/** A table with room for every row of the steps. */
export function createTable(steps: readonly Step[], paint: Paint): Table {
  const rows = steps.flatMap((step) => step.rows);
  const widths = titles.map((title, column) => {
    const cells = rows.map((row) => expectedCells(row)[column] ?? '');
    return Math.max(...[title, ...cells].map((cell) => cell.length));
  });
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();

  return {
    head: paint('dim', line(titles)),
    title: (step) => paint('bold', step.title),
    row(row, answer) {
      const differences = judge(row.expect, answer);
      if (differences.length === 0)
        return [line(['ok', ...cells(row, answer)]).replace('ok', paint('green', 'ok'))];
      const cause = guessCause(row.expect, answer);
      return wrong(line(['WRONG', ...cells(row, answer)]), [...differences, ...(cause ? [cause] : [])]);
    },
    unanswered: (row, reason) => wrong(line(['WRONG', ...requestCells(row)]), [reason]),
  };

  function wrong(text: string, reasons: readonly string[]): string[] {
    return [paint('red', text), ...reasons.map((reason) => paint('red', `       ${reason}`))];
  }
}

function cells(row: Row, answer: Answer): string[] {
  const { status, limit = '-', remaining = '-', reset = '-', limitedBy = '-' } = answer;
  return [...requestCells(row), String(status), limit, remaining, reset, limitedBy, describe(row.expect)];
}

/** Cells as wide as those of the real answer will be. */
function expectedCells(row: Row): string[] {
  const { limitedBy = '', counter } = row.expect;
  const numbers = [counter?.limit ?? '', counter?.limit ?? '', counter?.windowSeconds ?? ''].map(String);
  return [
    'WRONG',
    ...requestCells(row),
    String(row.expect.status),
    ...numbers,
    limitedBy,
    describe(row.expect),
  ];
}

function requestCells({ path, headers = {} }: Row): string[] {
  const headerText = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`GET ${path}`, headerText.join(', ')];
}
