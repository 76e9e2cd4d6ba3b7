import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { findBinary } from '@tollgate/testkit/binary';

/** Other work that takes more of a core than this shows in the numbers. */
export const busyLoad = 0.5;

/** What numbers depend on besides the code. */
export interface MachineFacts {
  cpu: string;
  /** Shared by the service, Redis and the load generator. */
  cores: number;
  memoryBytes: number;
  kernel: string;
  node: string;
  redis: string;
  /** Processes that wanted a core on average over the last minute, before anything was started. */
  load: number;
  /** Date of the measurement, UTC, such as 2026-01-31. */
  date: string;
}

/** Reads the facts of this machine. No names of hosts or users. */
export function readMachineFacts(): MachineFacts {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim(),
    node: process.versions.node,
    redis: redisVersion(),
    load: loadavg()[0] ?? 0,
    date: new Date().toISOString().slice(0, 10),
  };
}

function redisVersion(): string {
  try {
    const text = execFileSync(findBinary('redis-server'), ['--version'], { encoding: 'utf8' });
    return /v=(\S+)/.exec(text)?.[1] ?? 'unknown';
  } catch {
    return 'not installed';
  }
}
