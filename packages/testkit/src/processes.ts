import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { watchdogArguments } from '@tollgate/embedded-postgres/watchdog';

/** A program started by a test. */
export interface ServerProcess {
  readonly pid: number;
  /** Its output so far (stdout and stderr), truncated. */
  logs(): string;
  /** False once it has ended. */
  isRunning(): boolean;
  /** Sends SIGTERM, then SIGKILL if needed; resolves when it has ended. Idempotent. */
  stop(): Promise<void>;
  /** Sends SIGKILL, as in a crash. */
  kill(): Promise<void>;
}

/** How to start a program, and to detect that it is ready. */
export interface ServerProcessOptions {
  command: string;
  args: readonly string[];
  /**
   * Its complete environment; that of this process when absent. Unlike arguments, other users
   * cannot see it.
   */
  env?: Readonly<Record<string, string>>;
  /** Repeated until it does not throw: then the program is ready. */
  ready: () => Promise<void>;
  /** Default 60000: a cold Envoy takes 3 s on a busy machine with two cores. */
  readyTimeoutMs?: number;
}

/** Maximum length of the output. */
const maxLogChars = 1_000_000;

/** Time for a server to end before it is killed. */
const stopTimeoutMs = 30_000;

/**
 * Starts a program and waits until it is ready.
 *
 * @throws Error with the program's output when it ends before it answers or does not answer in
 * time; nothing is left running.
 */
export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const { command, args, env, ready, readyTimeoutMs = 60_000 } = options;
  // A process group of its own: a Ctrl-C in the terminal reaches the test first, and kill() reaches
  // the server.
  const child = spawn('/bin/sh', watchdogArguments('TERM', command, args), {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    ...(env !== undefined && { env }),
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-maxLogChars);
    });
  }
  // The server may end on its own before stop() closes the pipe.
  child.stdin.on('error', () => {});
  const exited = once(child, 'exit');
  const closed = once(child, 'close');
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  // Typed for three pipes only.
  const pid = Number(await text(child.stdio[3] as Readable));

  const server: ServerProcess = {
    pid,
    logs: () => output,
    isRunning,
    async stop() {
      child.stdin.destroy();
      if (await endsWithin(closed, stopTimeoutMs)) return;
      await server.kill();
    },
    async kill() {
      if (isRunning()) {
        child.stdin.end('KILL\n');
        await endsWithin(exited, stopTimeoutMs);
        // The shell and the processes that the program started.
        killGroup(child);
      }
      await closed;
    },
  };

  const deadline = performance.now() + readyTimeoutMs;
  for (;;) {
    try {
      await ready();
      return server;
    } catch (error) {
      const ended = !isRunning();
      if (ended || performance.now() >= deadline) {
        await server.kill();
        const what = ended
          ? `ended with code ${child.exitCode}`
          : `did not answer within ${readyTimeoutMs} ms`;
        throw new Error(`${command} ${what}. Its output:\n${output}`, { cause: error });
      }
    }
    await delay(10);
  }
}

async function endsWithin(closed: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const deadline = new AbortController();
  const ended = closed.then(() => true);
  const late = delay(timeoutMs, false, { signal: deadline.signal }).catch(() => false);
  const answer = await Promise.race([ended, late]);
  deadline.abort();
  return answer;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Already gone.
  }
}

/** Result of a program. */
export interface ProgramResult {
  /** Null when it was killed. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

const killAfterMs = 60_000;

/**
 * PATH, the compile cache of this process and `env`. Without that cache a service compiles all of
 * its code when it starts, which is half of the CPU time of a short command.
 */
export function programEnvironment(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }), ...env };
}

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
  for (const folder of [toolsFolder, ...searchPath.split(delimiter)]) {
    const candidate = join(folder, name);
    if (folder !== '' && isExecutable(candidate)) return candidate;
  }
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

/** Whether a program can be started from that path. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
