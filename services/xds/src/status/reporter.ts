import type { Logger } from '@tollgate/kit/logger';
import type { Steps } from '@tollgate/kit/steps';
import { runInSlices } from '@tollgate/kit/steps';
import type { Verdict } from '../catalog/accepted.ts';
import type { Schedule } from '../catalog/pipeline.ts';
import type { SnapshotResource, SnapshotStore } from '../catalog/snapshot.ts';
import type { PipelineTrace } from '../tracing.ts';
import { type DomainProgress, type ObjectStatus, progressOf, sameStatus, statusOf } from './conditions.ts';
import { type Audience, audienceOf, type LimiterGroup } from './limiter-groups.ts';
import type { LimiterFleet } from './reported-limiters.ts';
import type { StatusWriter } from './writer.ts';

/** Tells a count that is lower for good from one that is about to come back. */
interface RecentPeak {
  /** Takes note of the count. Answers whether it has not been higher of late: then it is the one to go by. */
  observe(count: number): boolean;
  /** Whether nothing but 0 was seen, and not for long: then it says nothing. */
  isStarting(): boolean;
  close(): void;
}

/** What it takes. */
interface RecentPeakDeps {
  readonly schedule: Schedule;
  /** Called when a higher count of the past does not matter any more. */
  readonly onFall: () => void;
}

/** Makes one that has seen nothing, and remembers a higher count for `windowMs`; with 0 every count is the one to go by. */
function createRecentPeak(windowMs: number, { schedule, onFall }: RecentPeakDeps): RecentPeak {
  /** Higher counts of the past, each with what takes back its being forgotten. */
  const higher = new Map<number, () => void>();
  /** Before anything was seen it may have been any number. */
  let present = Number.POSITIVE_INFINITY;

  function remember(count: number): void {
    higher.get(count)?.();
    const forgetIt = schedule(windowMs, () => {
      higher.delete(count);
      onFall();
    });
    higher.set(count, forgetIt);
  }

  function forget(count: number): void {
    higher.get(count)?.();
    higher.delete(count);
  }

  return {
    observe(count) {
      if (windowMs === 0) return true;
      if (count < present) remember(present);
      present = count;
      // One that is there at the start is news, however many there were before.
      if (count > 0) forget(Number.POSITIVE_INFINITY);
      for (const past of [...higher.keys()]) if (past <= count) forget(past);
      return higher.size === 0;
    },
    isStarting: () => higher.has(Number.POSITIVE_INFINITY),
    close() {
      for (const past of [...higher.keys()]) forget(past);
    },
  };
}

/** What the reporter takes. */
export interface StatusReporterDeps {
  /** What is thought of every object. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly store: SnapshotStore;
  readonly fleet: LimiterFleet;
  /** Undefined where objects have no status. */
  readonly writer: Pick<StatusWriter, 'put' | 'forget'> | undefined;
  readonly schedule: Schedule;
  /** How long limiters that have gone are expected back before every object is told of it; 0 tells at once. */
  readonly settleMs: number;
  /** Others have their turn this often while many statuses are looked at: streams, health checks. */
  readonly sliceMs: number;
  readonly logger: Logger;
  /** Undefined when nothing is traced. */
  readonly trace?: PipelineTrace | undefined;
}

/** Keeps the status of every object up to date, and tells the writer of those that have changed. */
export interface StatusReporter {
  /** There is something new of objects, rules or limiters. */
  changed(): void;
  /** By id, as told last. */
  readonly statuses: ReadonlyMap<string, ObjectStatus>;
  close(): Promise<void>;
}

/** Acknowledgements of hundreds of limiters come together; a person does not wait longer for this. */
const delayMs = 100;

/**
 * Makes a reporter that follows the limiters and the store until it is closed.
 *
 * How many limiters there are is in the status of every object. Connections end at a certain age, limiters move from one
 * replica to the other, and all are away when a process has just started: as long as there were more of them a moment ago,
 * a domain that every one of them had acknowledged stays so, and a process that has seen none says nothing at all. News of
 * a version is told at once, and so is a rejection.
 */
export function createStatusReporter(deps: StatusReporterDeps): StatusReporter {
  const { verdicts, store, fleet, writer, schedule, settleMs, sliceMs, logger, trace } = deps;
  const limiters = createRecentPeak(settleMs, { schedule, onFall: changed });
  const told = new Map<string, Told>();
  const statuses = new Map<string, ObjectStatus>();
  /** Of every domain that is served, as looked at last. */
  const progresses = new Map<string, DomainProgress>();
  /** The first number is to be that of all replicas. */
  let hasTold = false;
  let cancel: (() => void) | undefined;
  let isReporting = false;
  /** Statuses that have changed so far. */
  let reported = 0;
  let reporting: Promise<void> | undefined;
  let closed = false;

  function changed(): void {
    if (!closed) cancel ??= schedule(delayMs, onDue);
  }

  function onDue(): void {
    cancel = undefined;
    if (isReporting) changed();
    else reporting = report();
  }

  async function report(): Promise<void> {
    try {
      if (trace === undefined) await runInSlices(reportSteps(), { sliceMs });
      else await trace.report(countReported);
    } catch (error) {
      // A bug, or no memory left: what was told stays, and the next change is another attempt.
      logger.error({ err: error }, 'status of objects not brought up to date');
    }
  }

  async function countReported(): Promise<number> {
    const before = reported;
    await runInSlices(reportSteps(), { sliceMs });
    return reported - before;
  }

  /** Of objects, rules and limiters as they are at the first step: what comes in between is for the next report. */
  function* reportSteps(): Steps<void> {
    isReporting = true;
    try {
      const groups = fleet.update();
      const isSettled = observe(groups);
      if (limiters.isStarting()) return;
      const objects = [...verdicts.values()];
      const resources = store.current()?.resources ?? new Map<string, SnapshotResource>();
      const audience = yield* audienceOf(groups);
      yield* tellAll(objects, { resources, audience, isSettled });
    } finally {
      isReporting = false;
    }
  }

  /** Whether all limiters of a moment ago are still there. */
  function observe(groups: readonly LimiterGroup[]): boolean {
    const connected = groups.reduce((sum, { size }) => sum + size, 0);
    const isSettled = limiters.observe(fleet.isComplete() || hasTold ? connected : 0);
    hasTold ||= !limiters.isStarting();
    return isSettled;
  }

  function* tellAll(objects: readonly Verdict[], seen: Seen): Steps<void> {
    yield* followDomains(seen);
    const none = progressOf({ name: '', version: '' }, seen.audience);
    for (const verdict of objects) {
      if (closed) return;
      const progress =
        progresses.get(verdict.domain ?? '') ?? next(told.get(verdict.id)?.progress, none, seen.isSettled);
      tell(verdict, progress);
      yield;
    }
    for (const id of [...told.keys()]) if (!verdicts.has(id)) forget(id);
  }

  /** Brings `progresses` up to date: of every domain that is served, the same object as before where nothing has changed. */
  function* followDomains({ resources, audience, isSettled }: Seen): Steps<void> {
    for (const resource of resources.values()) {
      const { name } = resource;
      const before = progresses.get(name);
      const now = next(before, progressOf(resource, audience, before), isSettled);
      if (now !== before) progresses.set(name, now);
      yield;
    }
    if (progresses.size === resources.size) return;
    for (const name of [...progresses.keys()]) if (!resources.has(name)) progresses.delete(name);
  }

  function tell(verdict: Verdict, progress: DomainProgress): void {
    const before = told.get(verdict.id);
    if (before?.verdict === verdict && before.progress === progress) return;
    told.set(verdict.id, { verdict, progress });
    const status = statusOf(verdict, progress);
    const known = statuses.get(verdict.id);
    if (known !== undefined && sameStatus(known, status)) return;
    statuses.set(verdict.id, status);
    reported += 1;
    trace?.reported(status);
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
    async close() {
      closed = true;
      cancel?.();
      for (const stop of stops) stop();
      await reporting;
    },
  };
}

/** What a report goes by. */
interface Seen {
  readonly resources: ReadonlyMap<string, SnapshotResource>;
  readonly audience: Audience;
  /** Whether the number of limiters is the one to go by. */
  readonly isSettled: boolean;
}

/** From what the status of an object was made. */
interface Told {
  readonly verdict: Verdict;
  readonly progress: DomainProgress;
}

/** What is to be told: the same object as before where nothing has changed, or nothing that lasts. */
function next(before: DomainProgress | undefined, now: DomainProgress, isSettled: boolean): DomainProgress {
  if (before === undefined || before === now) return now;
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
