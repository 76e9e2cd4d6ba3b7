import { styleText } from 'node:util';

/** Where a command writes. Tests have their own. */
export interface Terminal {
  /** Writes text to standard output. */
  readonly print: (text: string) => void;
  /** Writes a line to standard error. */
  readonly warn: (line: string) => void;
  /** Whether colours and progress are shown. */
  readonly isInteractive: boolean;
}

/** Standard output and standard error of the process. */
export const processTerminal: Terminal = {
  print: (text) => void process.stdout.write(text),
  warn: (line) => void process.stderr.write(`${line}\n`),
  isInteractive: process.stdout.isTTY === true && process.env.NO_COLOR === undefined,
};

type Style = Parameters<typeof styleText>[0];

/** Text with a style, on a terminal only. */
export function style({ isInteractive }: Terminal, format: Style, text: string): string {
  return isInteractive ? styleText(format, text, { validateStream: false }) : text;
}

/** Writes a value as JSON. */
export function printJson({ print }: Terminal, value: unknown): void {
  print(`${JSON.stringify(value, null, 2)}\n`);
}
