import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Client, credentials } from '@grpc/grpc-js';
import { findBinary } from '@tollgate/testkit/processes';

const callTimeoutMs = 30_000;

/** Resources that a process has used so far. */
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
