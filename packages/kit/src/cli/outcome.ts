/** How a command ends: what it writes, and with which code it exits. */
export interface Outcome {
  readonly exitCode: number;
  /** For standard output. */
  readonly output?: string;
  /** For standard error. */
  readonly errors?: string;
}

/** The exit code of arguments that make no sense, as shells and Go's `flag` package have it. */
const usageExitCode = 2;

/** Refuses arguments: the problems, one a line, and where help is. */
export function wrongUsage(command: string, problems: readonly string[]): Outcome {
  const lines = [...problems, `${command} --help says how it is called`];
  return { exitCode: usageExitCode, errors: lines.map((line) => `${line}\n`).join('') };
}
