import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** What a program did. */
export interface ProgramResult {
  /** Null when it had to be killed. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

/** No command of ours runs longer by itself. */
const killAfterMs = 60_000;

/** Runs a TypeScript program in a process of its own until it ends; of the environment it gets PATH and `env`. */
export async function runProgram(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ProgramResult> {
  const child = spawn(process.execPath, [file, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: killAfterMs,
    killSignal: 'SIGKILL',
  });
  const [output, errors, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { exitCode, output, errors };
}
