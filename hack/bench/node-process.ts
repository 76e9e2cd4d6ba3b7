import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A program of ours to start, and how one sees that it is ready. */
export interface NodeProcessOptions {
  /** The file that Node runs. */
  program: string;
  /** Flags of Node. */
  nodeFlags?: readonly string[];
  /** Its whole environment but for PATH. */
  env: Readonly<Record<string, string>>;
  /** Answers 2xx when it is ready. */
  readyUrl: string;
  /** Default 30000. */
  startTimeoutMs?: number;
}

/** A program of ours, running. */
export interface NodeProcess {
  readonly pid: number;
  /** From the start of the process until it said it was ready. */
  readonly startMs: number;
  /** The last that it wrote. */
  log(): string;
  /** Stops it as an operator would (SIGTERM), kills it when it does not stop. Idempotent. */
  stop(): Promise<void>;
}

const defaultStartTimeoutMs = 30_000;
/** Writing a CPU profile takes a while. */
const stopTimeoutMs = 20_000;
/** Enough to see why it did not start. */
const maxLogChars = 20_000;

/**
 * Starts a program and waits until it is ready.
 *
 * @throws Error with its output when it does not get there; it is gone by then.
 */
export async function startNodeProcess(options: NodeProcessOptions): Promise<NodeProcess> {
  const { program, nodeFlags = [], env, readyUrl, startTimeoutMs = defaultStartTimeoutMs } = options;
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...nodeFlags, program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...env },
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-maxLogChars);
    });
  }
  const stop = stopper(child);
  try {
    await ready(readyUrl, child, startedAt + startTimeoutMs);
  } catch (error) {
    await stop();
    throw new Error(`the service did not start. Its output:\n${log}`, { cause: error });
  }
  const startMs = performance.now() - startedAt;
  return { pid: child.pid ?? 0, startMs, log: () => log, stop };
}

function stopper(child: ChildProcess): () => Promise<void> {
  const exited = once(child, 'exit');
  // A process that cannot even be spawned says 'error' instead.
  exited.catch(() => {});
  const killWithParent = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', killWithParent);
  return async () => {
    process.off('exit', killWithParent);
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const kill = setTimeout(killWithParent, stopTimeoutMs);
    await exited;
    clearTimeout(kill);
  };
}

async function ready(url: string, child: ChildProcess, deadline: number): Promise<void> {
  for (;;) {
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(1000) });
      await answer.text();
      if (answer.ok) return;
    } catch {
      // Not listening yet.
    }
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    if (performance.now() > deadline) throw new Error('it was not ready in time');
    await delay(5);
  }
}
