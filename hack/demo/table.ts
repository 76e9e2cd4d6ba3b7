import type { Outcome } from './story/perform.ts';
import type { Row, Step } from './story/scenario.ts';

/** Colours a text, where the output has colours. */
export type Paint = (style: 'bold' | 'dim' | 'green' | 'red', text: string) => string;

/** Lays out the rows of a scenario in columns of one width, so that each can be printed as soon as it is known. */
export interface Table {
  readonly head: string;
  title(step: Step): string;
  row(row: Row, outcome: Outcome): string;
}

/** Up to ten seconds. */
const msWidth = 4;

/** A table with room for every row of the steps. */
export function createTable(steps: readonly Step[], paint: Paint): Table {
  const rows = steps.flatMap((step) => step.rows);
  const whatWidth = Math.max(...rows.map(({ what }) => what.length));
  const expectWidth = Math.max(...rows.map(({ expect }) => expect.length));
  // What came is last: it may be longer than anything that is expected.
  const line = (mark: string, what: string, ms: string, expected: string, came: string) =>
    [mark.padEnd(5), what.padEnd(whatWidth), ms.padStart(msWidth), expected.padEnd(expectWidth), came].join(
      '  ',
    );
  return {
    head: paint('dim', line('', 'what', 'ms', 'expected', 'came')),
    title: (step) => paint('bold', step.title),
    row({ what, expect }, { asExpected, came, tookMs }) {
      const ms = String(Math.round(tookMs));
      if (!asExpected) return paint('red', line('WRONG', what, ms, expect, came));
      return line('ok', what, ms, expect, came).replace('ok', paint('green', 'ok'));
    },
  };
}
