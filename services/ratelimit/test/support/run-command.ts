import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** What a command did. */
export interface CommandResult {
  /** Null when it had to be killed. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

const sources = join(import.meta.dirname, '../../src');
/** No command of ours runs longer by itself. */
const killAfterMs = 20_000;

/** Runs one of the service's programs, named from `src`, in a process of its own until it ends. */
export async function runCommand(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const child = spawn(process.execPath, [join(sources, program), ...args], {
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
