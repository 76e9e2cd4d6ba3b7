import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, credentials } from '@grpc/grpc-js';
import { findBinary } from '@tollgate/testkit/processes';
import { freePort, withFreePort } from '@tollgate/testkit/tcp';

const services = join(import.meta.dirname, '../../services');
const loopback = '127.0.0.1';
const startTimeoutMs = 120_000;
/** Writing a CPU profile takes a while. */
const stopTimeoutMs = 20_000;
const callTimeoutMs = 30_000;
const maxLogChars = 20_000;

/** A service of ours, running. */
export interface ServiceProcess {
  readonly pid: number;
  /** From the start of the process until it was ready. */
  readonly startMs: number;
  /** The end of its output. */
  log(): string;
  /** Sends SIGTERM, and SIGKILL when that does not end it. Idempotent. */
  stop(): Promise<void>;
}

/** services/ratelimit. */
export interface LimiterProcess extends ServiceProcess {
  /** Of its gRPC server, `host:port`. */
  readonly address: string;
  readonly httpUrl: string;
}

/**
 * Starts services/ratelimit, with statistics off, and waits until it is healthy.
 *
 * @throws Error with its output when it does not start.
 */
export function startLimiter(
  settings: Readonly<Record<string, string>>,
  nodeFlags: readonly string[],
): Promise<LimiterProcess> {
  // Another program may take one of the ports meanwhile: then the service is started on others.
  return withFreePort(async (grpcPort) => {
    const [httpPort, debugPort] = [await freePort(), await freePort()];
    const httpUrl = `http://${loopback}:${httpPort}`;
    const env = {
      HOST: loopback,
      PORT: String(httpPort),
      GRPC_HOST: loopback,
      GRPC_PORT: String(grpcPort),
      DEBUG_HOST: loopback,
      DEBUG_PORT: String(debugPort),
      RUNTIME_WATCH_ROOT: 'false',
      USE_PUSHSTATS: 'false',
      BACKEND_TYPE: 'memory',
      ...settings,
    };
    const started = await startService('ratelimit', { env, nodeFlags, readyUrl: `${httpUrl}/healthcheck` });
    return { ...started, address: `${loopback}:${grpcPort}`, httpUrl };
  });
}

/** Starts a service and waits until `readyUrl` answers 2xx. */
export async function startService(
  service: string,
  options: {
    /** All of its environment except PATH. */
    readonly env: Readonly<Record<string, string>>;
    readonly nodeFlags: readonly string[];
    readonly readyUrl: string;
    readonly args?: readonly string[];
  },
): Promise<ServiceProcess> {
  const { env, nodeFlags, readyUrl, args = [] } = options;
  const startedAt = performance.now();
  const program = join(services, service, 'src/main.ts');
  const child = spawn(process.execPath, [...nodeFlags, program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...env },
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-maxLogChars);
    });
  const stop = stopper(child);
  try {
    await waitUntilReady(readyUrl, child, startedAt + startTimeoutMs);
  } catch (error) {
    await stop();
    throw new Error(`${service} did not start. Its output:\n${log}`, { cause: error });
  }
  return { pid: child.pid ?? 0, startMs: performance.now() - startedAt, log: () => log, stop };
}

/** For a child that must not outlive this process. */
export function stopper(child: ChildProcess): () => Promise<void> {
  const exited = once(child, 'exit');
  // A process that cannot be spawned emits 'error' instead.
  exited.catch(() => {});
  const kill = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', kill);
  return async () => {
    process.off('exit', kill);
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(kill, stopTimeoutMs);
    await exited;
    clearTimeout(timer);
  };
}

async function waitUntilReady(url: string, child: ChildProcess, deadline: number): Promise<void> {
  for (;;) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(1000) });
      await response.text();
      if (response.ok) return;
    } catch {
      // Not listening yet.
    }
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    if (performance.now() > deadline) throw new Error('it was not ready in time');
    await delay(5);
  }
}

/** What a process has used so far. */
export interface ProcessUsage {
  /** User and system time of all threads, in steps of 10 ms. */
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly peakRssBytes: number;
}

/** Reads Linux's /proc. @see proc_pid_stat(5), proc_pid_status(5) */
export function readProcessUsage(pid: number): ProcessUsage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  // The second field is the name of the program in parentheses, which may contain anything. utime
  // and stime are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const bytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024;
  // USER_HZ is 100 on all processors that we know.
  const cpuMs = (Number(fields[11]) + Number(fields[12])) * 10;
  return { cpuMs, rssBytes: bytes('VmRSS'), peakRssBytes: bytes('VmHWM') };
}

/** Milliseconds of the machine's monotonic clock, which all processes share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A gRPC connection for single calls of bytes. */
export function openCalls(address: string): {
  call(path: string, message: Uint8Array): Promise<Uint8Array>;
  close(): void;
} {
  const client = new Client(address, credentials.createInsecure());
  return {
    close: () => client.close(),
    call: (path, message) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest<Uint8Array, Uint8Array>(
          path,
          (bytes) => Buffer.from(bytes),
          (bytes) => bytes,
          message,
          { deadline: Date.now() + callTimeoutMs },
          (error, reply) => (reply === undefined ? reject(error) : resolve(reply)),
        );
      }),
  };
}

/** `Envoy 1.40.0`. */
export function programVersion(name: string, binary: string): string {
  const text = execFileSync(findBinary(binary), ['--version'], { encoding: 'utf8' });
  return `${name} ${/\d+(?:\.\d+)+/.exec(text)?.[0] ?? 'unknown'}`;
}
