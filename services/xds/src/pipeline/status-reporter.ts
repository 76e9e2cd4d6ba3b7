import type { LimiterFleet } from '../clients/limiter-fleet.ts';
import type { LimiterGroup } from '../domain/limiter-groups.ts';
import type { ObjectStatus } from '../domain/object-status.ts';
import { type DomainProgress, progressOf } from '../domain/programmed.ts';
import { sameStatus, statusOf } from '../domain/status-of.ts';
import type { Verdict } from '../domain/verdict.ts';
import type { StatusWriter } from '../ports/status-writer.ts';
import type { SnapshotStore } from '../snapshots/snapshot-store.ts';
import type { Schedule } from './schedule.ts';
import { createSettledCount } from './settled-count.ts';

/** What the reporter takes. */
export interface StatusReporterDeps {
  /** What is thought of every object. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly store: SnapshotStore;
  readonly fleet: LimiterFleet;
  /** Undefined where objects have no status. */
  readonly writer: StatusWriter | undefined;
  readonly schedule: Schedule;
  /** How long limiters may come and go before every object is told of it; 0 tells at once. */
  readonly settleMs: number;
}

/** Keeps the status of every object up to date, and tells the writer of those that have changed. */
export interface StatusReporter {
  /** There is something new of objects, rules or limiters. */
  changed(): void;
  /** By id, as told last. */
  readonly statuses: ReadonlyMap<string, ObjectStatus>;
  close(): void;
}

/** Acknowledgements of hundreds of limiters come together; a person does not wait longer for this. */
const delayMs = 100;

/**
 * Makes a reporter that follows the limiters and the store until it is closed.
 *
 * How many limiters there are is in the status of every object. They move from one replica to the other, come back after
 * an update, and are all away when a process has just started: as long as their number has not settled, a domain that every
 * one of them had acknowledged stays so, and a process that has seen none says nothing at all. News of a version is told
 * at once, and so is a rejection.
 */
export function createStatusReporter(deps: StatusReporterDeps): StatusReporter {
  const { verdicts, store, fleet, writer, schedule, settleMs } = deps;
  const limiters = createSettledCount(settleMs, { schedule, onSettled: changed });
  const told = new Map<string, Told>();
  const statuses = new Map<string, ObjectStatus>();
  let progresses = new Map<string, DomainProgress>();
  let cancel: (() => void) | undefined;
  let closed = false;

  function changed(): void {
    if (!closed) cancel ??= schedule(delayMs, report);
  }

  function report(): void {
    cancel = undefined;
    const groups = fleet.update();
    const isSettled = observe(groups);
    if (limiters.value() === undefined) return;
    progresses = progressOfAll(groups, isSettled);
    const none = progressOf('', '', groups);
    for (const verdict of verdicts.values()) {
      const progress =
        progresses.get(verdict.domain ?? '') ?? next(told.get(verdict.id)?.progress, none, isSettled);
      tell(verdict, progress);
    }
    for (const id of [...told.keys()]) if (!verdicts.has(id)) forget(id);
  }

  /** Whether the number of limiters is the one to go by. */
  function observe(groups: readonly LimiterGroup[]): boolean {
    const connected = groups.reduce((sum, { size }) => sum + size, 0);
    // The first number is to be that of all replicas.
    const isPart = limiters.value() === undefined && !fleet.isComplete();
    return limiters.observe(isPart ? 0 : connected);
  }

  /** Of every domain that is served; the same object as before where nothing has changed. */
  function progressOfAll(groups: readonly LimiterGroup[], isSettled: boolean): Map<string, DomainProgress> {
    const all = new Map<string, DomainProgress>();
    for (const { name, version } of store.current()?.resources.values() ?? [])
      all.set(name, next(progresses.get(name), progressOf(name, version, groups), isSettled));
    return all;
  }

  function tell(verdict: Verdict, progress: DomainProgress): void {
    const before = told.get(verdict.id);
    if (before?.verdict === verdict && before.progress === progress) return;
    told.set(verdict.id, { verdict, progress });
    const status = statusOf(verdict, progress);
    const known = statuses.get(verdict.id);
    if (known !== undefined && sameStatus(known, status)) return;
    statuses.set(verdict.id, status);
    writer?.put(status);
  }

  function forget(id: string): void {
    told.delete(id);
    statuses.delete(id);
    writer?.forget(id);
  }

  const stops = [store.onChange(changed), fleet.onChange(changed), limiters.close];
  return {
    changed,
    statuses,
    close() {
      closed = true;
      cancel?.();
      for (const stop of stops) stop();
    },
  };
}

/** From what the status of an object was made. */
interface Told {
  readonly verdict: Verdict;
  readonly progress: DomainProgress;
}

/** What is to be told: the same object as before where nothing has changed, or nothing that lasts. */
function next(before: DomainProgress | undefined, now: DomainProgress, isSettled: boolean): DomainProgress {
  if (before === undefined) return now;
  const stays = isSameProgress(before, now) || (!isSettled && isCounting(before, now));
  return stays ? before : now;
}

function isSameProgress(a: DomainProgress, b: DomainProgress): boolean {
  return (
    a.version === b.version &&
    a.connected === b.connected &&
    a.acknowledged === b.acknowledged &&
    a.programmed.message === b.programmed.message
  );
}

/** Whether the news are of how many limiters there are, and of nothing else that anybody waits for. */
function isCounting(before: DomainProgress, now: DomainProgress): boolean {
  const nobodyWaits = before.programmed.reason === 'Acknowledged' || before.version === '';
  return before.version === now.version && nobodyWaits && now.programmed.reason !== 'Nacked';
}
