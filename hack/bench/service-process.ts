import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@tollgate/testkit/free-port';
import { withFreePort } from '@tollgate/testkit/with-free-port';

/** How the service under test is started. */
export interface ServiceOptions {
  /** Folder with a folder `config` of rule files. */
  runtimeRoot: string;
  /** `host:port` of a Redis; the memory backend without it. */
  redisAddress?: string;
  /** Flags of Node. */
  nodeFlags: readonly string[];
}

/** The service under test, running. */
export interface Service {
  readonly pid: number;
  readonly host: string;
  readonly grpcPort: number;
  readonly httpPort: number;
  /** From the start of the process until it said it was healthy. */
  readonly startMs: number;
  /** Stops it as an operator would (SIGTERM), kills it when it does not stop. Idempotent. */
  stop(): Promise<void>;
}

const program = join(import.meta.dirname, '../../services/ratelimit/src/main.ts');
const loopback = '127.0.0.1';
const startTimeoutMs = 30_000;
/** Writing a CPU profile takes a while. */
const stopTimeoutMs = 20_000;
/** Enough to see why it did not start. */
const maxLogChars = 20_000;

/**
 * Starts services/ratelimit on free ports of the loopback address and waits until it is healthy.
 *
 * @throws Error with its output when it does not get there; it is gone by then.
 */
export function startService(options: ServiceOptions): Promise<Service> {
  // Another program may take one of the ports meanwhile: the service says so and ends, and is started on others.
  return withFreePort(async (grpcPort) => {
    return startOn({ grpcPort, httpPort: await freePort(), debugPort: await freePort() }, options);
  });
}

interface Ports {
  grpcPort: number;
  httpPort: number;
  debugPort: number;
}

async function startOn({ grpcPort, httpPort, debugPort }: Ports, options: ServiceOptions): Promise<Service> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...options.nodeFlags, program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOST: loopback,
      PORT: String(httpPort),
      GRPC_HOST: loopback,
      GRPC_PORT: String(grpcPort),
      DEBUG_HOST: loopback,
      DEBUG_PORT: String(debugPort),
      RUNTIME_ROOT: options.runtimeRoot,
      // Files are swapped in place, as an editor would.
      RUNTIME_WATCH_ROOT: 'false',
      USE_PUSHSTATS: 'false',
      ...backendSettings(options.redisAddress),
    },
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-maxLogChars);
    });
  }
  const stop = stopper(child);
  try {
    await healthy(`http://${loopback}:${httpPort}/healthcheck`, child, startedAt + startTimeoutMs);
  } catch (error) {
    await stop();
    throw new Error(`the service did not start. Its output:\n${log}`, { cause: error });
  }
  const startMs = performance.now() - startedAt;
  return { pid: child.pid ?? 0, host: loopback, grpcPort, httpPort, startMs, stop };
}

function backendSettings(redisAddress: string | undefined): NodeJS.ProcessEnv {
  if (redisAddress === undefined) return { BACKEND_TYPE: 'memory' };
  return { BACKEND_TYPE: 'redis', KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_URL: redisAddress };
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

async function healthy(url: string, child: ChildProcess, deadline: number): Promise<void> {
  for (;;) {
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(1000) });
      await answer.text();
      if (answer.ok) return;
    } catch {
      // Not listening yet.
    }
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    if (performance.now() > deadline) throw new Error('it was not healthy in time');
    await delay(5);
  }
}
