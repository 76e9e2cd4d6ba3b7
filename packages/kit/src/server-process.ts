import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { programEnvironment } from './programs.ts';
import { watchdogArguments } from './watchdog.ts';

/** A program that ends with this process, however that ends. */
export interface ServerProcess {
  readonly pid: number;
  /** Its output so far (stdout and stderr), truncated. */
  logs(): string;
  /** False once it has ended. */
  isRunning(): boolean;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** Sends SIGTERM, then SIGKILL if needed; resolves when it has ended. Idempotent. */
  stop(): Promise<void>;
  /** Sends SIGKILL, as in a crash. */
  kill(): Promise<void>;
}

/** How to start a program, and to detect that it is ready. */
interface ServerProcessOptions {
  command: string;
  args: readonly string[];
  /**
   * Its complete environment; that of this process when absent. Unlike arguments, other users
   * cannot see it.
   */
  env?: Readonly<Record<string, string>>;
  /** Repeated until it does not throw: then the program is ready. */
  ready: () => Promise<void>;
  /** Default 150000: the auth server with a new database can take a minute on a busy machine. */
  readyTimeoutMs?: number;
  /** Receives each line of its output. */
  onLine?: ((line: string) => void) | undefined;
  /** Ends the start. */
  signal?: AbortSignal | undefined;
}

/** Maximum length of the output. */
const maxLogChars = 1_000_000;

/** The longest pause between two attempts to find a program ready. */
const maxPauseMs = 100;

/** Time for a server to end before it is killed. */
const stopTimeoutMs = 30_000;

/**
 * Starts a program and waits until it is ready.
 *
 * @throws Error with the program's output when it ends before it answers or does not answer in
 * time, the reason of the signal when it aborts; nothing is left running.
 */
export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const { command, args, env, ready, readyTimeoutMs = 150_000, onLine, signal } = options;
  // A process group of its own: a Ctrl-C in the terminal reaches this process first, and kill()
  // reaches the server.
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
    if (onLine !== undefined) createInterface({ input: stream }).on('line', onLine);
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
    ended: closed.then(() => undefined),
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

  const startMs = performance.now();
  for (;;) {
    if (signal?.aborted === true) await server.stop();
    signal?.throwIfAborted();
    try {
      await ready();
      return server;
    } catch (error) {
      const ended = !isRunning();
      if (ended || performance.now() >= startMs + readyTimeoutMs) {
        await server.kill();
        const what = ended
          ? `ended with code ${child.exitCode}`
          : `did not answer within ${readyTimeoutMs} ms`;
        throw new Error(`${command} ${what}. Its output:\n${output}`, { cause: error });
      }
    }
    // Attempts take CPU time from the program.
    await delay(Math.min(10 + (performance.now() - startMs) / 10, maxPauseMs));
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

/** How to run a server that has a URL for its readiness. */
export interface HttpServerOptions {
  /** Added to `programEnvironment`; nothing else of this process's environment configures it. */
  readonly settings: Readonly<Record<string, string>>;
  /** Responds 2xx when the server is ready. */
  readonly readyUrl: string;
  readonly onLine?: ((line: string) => void) | undefined;
  /** Ends the start. */
  readonly signal?: AbortSignal | undefined;
}

/** Starts any program that has a URL for its readiness. @throws as `startServerProcess`. */
export function startHttpServer(
  [command = '', ...args]: readonly string[],
  { settings, readyUrl, onLine, signal }: HttpServerOptions,
): Promise<ServerProcess> {
  return startServerProcess({
    command,
    args,
    env: programEnvironment(settings),
    onLine,
    signal,
    ready: async () => void (await fetchText(readyUrl)),
  });
}

const requestTimeoutMs = 30_000;

/** The body of a page. @throws Error when the status is not 2xx. */
export async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMs) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return text;
}

/** Whether no process listens on a port. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '0.0.0.0');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
