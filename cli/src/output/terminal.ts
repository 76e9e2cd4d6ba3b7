import { styleText } from 'node:util';

/** Where a command writes. Tests have their own. */
export interface Terminal {
  /** Writes text to standard output. */
  readonly print: (text: string) => void;
  /** Writes a line to standard error. */
  readonly warn: (line: string) => void;
  /** Whether standard output has colours. */
  readonly hasColours: boolean;
  /** The screen, where standard output is a terminal. */
  readonly screen?: Screen;
}

/** A screen that a command redraws. */
export interface Screen {
  /** Lines that fit at this moment. */
  rows(): number;
  /** Calls the listener after each change of the size, until the returned function is called. */
  onResize(listener: () => void): () => void;
}

/** The part of a stream that says whether it is a terminal. */
type Output = Pick<NodeJS.WriteStream, 'isTTY' | 'rows' | 'on' | 'off'>;

/** A terminal that reports no size is taken for one of this height. */
const defaultRows = 24;

/** Describes what an output can show. @see https://no-color.org */
export function describeOutput(
  output: Output,
  { NO_COLOR = '', TERM }: NodeJS.ProcessEnv,
): Pick<Terminal, 'hasColours' | 'screen'> {
  // A dumb terminal, such as that of an editor, has no cursor to move.
  if (!output.isTTY || TERM === 'dumb') return { hasColours: false };
  return {
    hasColours: NO_COLOR === '',
    screen: {
      rows: () => output.rows || defaultRows,
      onResize(listener) {
        output.on('resize', listener);
        return () => output.off('resize', listener);
      },
    },
  };
}

/** Standard output and standard error of the process. */
export const processTerminal: Terminal = {
  print: (text) => void process.stdout.write(text),
  warn: (line) => void process.stderr.write(`${line}\n`),
  ...describeOutput(process.stdout, process.env),
};

type Style = Parameters<typeof styleText>[0];

/** Text with a style, where there are colours. */
export function style({ hasColours }: Terminal, format: Style, text: string): string {
  return hasColours ? styleText(format, text, { validateStream: false }) : text;
}

/** Writes a value as JSON. */
export function printJson({ print }: Terminal, value: unknown): void {
  print(`${JSON.stringify(value, null, 2)}\n`);
}
