import { alignColumns, escapeControls } from '@tollgate/kit/table';
import { style, type Terminal } from '../output/terminal.ts';
import type { Explanation } from './explanation.ts';

/** Prints names and values below each other. */
export function printExplanation(
  terminal: Terminal,
  request: string,
  { caller, routes, policies, answer, status }: Explanation,
): void {
  const rows = [
    ['Request', request],
    ['Caller', caller],
    ...routes.map((route) => ['Route', route]),
    ...policies.flatMap(({ name, rule, reason, access, limits }) => [
      ['Policy', `${name}, rule ${rule}${reason === '' ? '' : ` (${reason})`}`],
      ['Access', access],
      ...limits.map((limit) => ['Limit', `${limit.name}: ${limit.state}`]),
    ]),
  ];
  const lines = alignColumns([...rows, ['Answer', answer]].map((row) => row.map(escapeControls)));
  const last = lines.length - 1;
  const color = status < 400 ? 'green' : 'red';
  for (const [index, line] of lines.entries())
    terminal.print(`${index === last ? style(terminal, color, line) : line}\n`);
}
