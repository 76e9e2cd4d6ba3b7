import { readFileSync } from 'node:fs';

/** What a process has used so far. */
export interface ProcessUsage {
  /** User and system time of all its threads; moves in steps of 10 ms. */
  cpuMs: number;
  /** Resident memory now. */
  rssBytes: number;
  /** Most resident memory at any time. */
  peakRssBytes: number;
}

/** Linux shows times to programs in hundredths of a second, whatever the kernel's own clock (USER_HZ). */
const msPerClockTick = 10;

/**
 * Reads what a process has used, from Linux's /proc.
 *
 * @throws Error when there is no such process, or no /proc.
 */
export function readProcessUsage(pid: number): ProcessUsage {
  return parseProcessUsage(
    readFileSync(`/proc/${pid}/stat`, 'utf8'),
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  );
}

/**
 * Reads the text of /proc/<pid>/stat and /proc/<pid>/status.
 *
 * @see proc_pid_stat(5), proc_pid_status(5)
 */
export function parseProcessUsage(stat: string, status: string): ProcessUsage {
  // The program's name comes second, in parentheses, and may hold anything; utime and stime are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const bytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024;
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * msPerClockTick,
    rssBytes: bytes('VmRSS'),
    peakRssBytes: bytes('VmHWM'),
  };
}
