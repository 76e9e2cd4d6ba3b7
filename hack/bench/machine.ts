import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';

/** Shares of the cores that the benchmark did not get. */
export interface OtherUse {
  /** Taken by other processes. */
  readonly other: number;
  /** Taken by the hypervisor. */
  readonly steal: number;
}

/** Above this share of the cores, tail latencies say more about the machine than about us. */
const busyShare = 0.05;

export function isBusy({ other, steal }: OtherUse): boolean {
  return other + steal > busyShare;
}

/**
 * Starts to measure other work. The function that it returns gives the shares since then; processes
 * of the benchmark must have ended, because the kernel adds their time to their parent then.
 */
export function watchOtherUse(): () => OtherUse {
  const read = () => parseTicks(readFileSync('/proc/stat', 'utf8'), readFileSync('/proc/self/stat', 'utf8'));
  const before = read();
  return () => findOtherUse(before, read());
}

/** CPU time since the machine started. */
export interface Ticks {
  readonly all: number;
  readonly busy: number;
  readonly own: number;
  readonly steal: number;
}

export function findOtherUse(before: Ticks, after: Ticks): OtherUse {
  const since = (key: keyof Ticks) => after[key] - before[key];
  const share = (ticks: number) => Math.max(0, ticks) / Math.max(1, since('all'));
  return { other: share(since('busy') - since('own')), steal: share(since('steal')) };
}

/** @see proc_stat(5), proc_pid_stat(5) */
export function parseTicks(machine: string, self: string): Ticks {
  const [line = ''] = machine.split('\n');
  const columns = line.split(/\s+/).slice(1, 9).map(Number);
  // Interrupts are not counted: the kernel assigns those of the load to no process.
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] = columns;
  // Fields 14 to 17: user and system time, and those of children that have ended. The second field
  // may contain spaces.
  const fields = self.slice(self.lastIndexOf(')') + 2).split(' ');
  return {
    all: sum(columns),
    busy: user + nice + system,
    own: sum(fields.slice(11, 15).map(Number)),
    steal,
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** One line about the machine and the programs, without names of hosts or users. */
export function formatMachine(
  { sharedBy, programs }: { readonly sharedBy: string; readonly programs: readonly string[] },
  use: OtherUse,
): string {
  const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
  return [
    `${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? 'unknown'} (shared by ${sharedBy})`,
    `${Math.round(totalmem() / 1e9)} GB`,
    `Linux ${release()}`,
    `Node ${process.versions.node}`,
    ...programs,
    `other work took ${percent(use.other)} of the cores during the run and the hypervisor ${percent(use.steal)}`,
    new Date().toISOString().slice(0, 10),
  ].join(', ');
}
