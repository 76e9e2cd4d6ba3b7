import type { Outcome } from './outcome.ts';

/** Writes what a command has to say, and lets the process end with its code once that is written. */
export function finish({ exitCode, output = '', errors = '' }: Outcome): void {
  process.stdout.write(output);
  process.stderr.write(errors);
  process.exitCode = exitCode;
}
