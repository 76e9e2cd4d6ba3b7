import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { findProgram, programEnvironment } from '@tollgate/kit/programs';

// Tests start programs as `tollgate up` does.
export { isExecutable, programEnvironment } from '@tollgate/kit/programs';
export { type ServerProcess, startServerProcess } from '@tollgate/kit/server-process';

/** Result of a program. */
export interface ProgramResult {
  /** Null when it was killed. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

const killAfterMs = 60_000;

interface ProgramOptions {
  /** Added to `programEnvironment`; nothing else of this process's environment is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Standard input; empty by default. */
  readonly input?: string;
  /** User and group; those of this process by default. */
  readonly uid?: number;
  readonly gid?: number;
}

/** Runs a TypeScript program in a process until it ends. */
export async function runProgram(
  file: string,
  args: readonly string[],
  { env, input = '', ...options }: ProgramOptions = {},
): Promise<ProgramResult> {
  const child = spawn(process.execPath, [file, ...args], {
    ...options,
    env: programEnvironment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: killAfterMs,
    killSignal: 'SIGKILL',
  });
  // A program that ends without reading its input closes the pipe.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [output, errors, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { exitCode, output, errors };
}

/** The `.tools/bin` folder of this checkout, with the programs that hack/setup.sh installed. */
const toolsFolder = resolve(import.meta.dirname, '../../../.tools/bin');

/**
 * Absolute path of a program that the tests start: looked for in `.tools/bin`, then along PATH.
 *
 * @throws Error that says how to get it, when it is nowhere.
 */
export function findBinary(name: string, searchPath: string = process.env.PATH ?? ''): string {
  const path = findProgram(name, [toolsFolder, searchPath].join(delimiter));
  if (path !== undefined) return path;
  throw new Error(`${name} is not installed: run hack/setup.sh test`);
}

/**
 * Why the tests that need a program cannot run here; `false` when they can.
 *
 * @throws Error in CI, when it is missing.
 */
export function programIsMissing(name: string): string | false {
  try {
    findBinary(name);
    return false;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return `left out: ${error instanceof Error ? error.message : String(error)}`;
  }
}
