import { escapeControls } from '@tollgate/kit/table';
import { style, type Terminal } from '../output/terminal.ts';

const colours = { up: 'bold', xds: 'blue', limiter: 'magenta', auth: 'green', envoy: 'cyan' } as const;

type Label = keyof typeof colours;

/** One log of all parts: each line begins with the name of its part, in a colour of its own. */
export class Log {
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Writes a line of a part; `up` is the command itself. */
  write(label: string, line: string, isProblem = false): void {
    const width = Math.max(...Object.keys(colours).map(({ length }) => length));
    const colour = Object.hasOwn(colours, label) ? colours[label as Label] : 'dim'; // checked
    const text = escapeControls(line.replaceAll('\t', '  ').trimEnd());
    const shown = isProblem ? style(this.#terminal, 'red', text) : text;
    this.#terminal.print(`${style(this.#terminal, colour, label.padEnd(width))} | ${shown}\n`);
  }
}
