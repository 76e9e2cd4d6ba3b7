import { isDeepStrictEqual } from 'node:util';
import { runInSlices, type Schedule, type Steps } from '@tollgate/kit/time';
import type { LimiterRegistry } from '../ads/limiters.ts';
import type { SnapshotResource, SnapshotStore } from '../catalog/snapshot.ts';
import type { ValidationResult } from '../catalog/validation.ts';
import type { Context } from '../context.ts';
import {
  type DomainStatus,
  groupLimiters,
  indexSubscribers,
  type LimiterGroup,
  needsAction,
  type ObjectStatus,
  type Subscribers,
  toDomainStatus,
  toObjectStatus,
} from './conditions.ts';
import { ReportedLimiters } from './limiter-report.ts';
import type { ReplicaReports } from './replica-reports.ts';

/** Receives statuses, from all replicas. */
export interface StatusWriter {
  /** Receives only statuses that need action, and the first one after them. Default false. */
  readonly problemsOnly?: boolean;
  /** Sets the wanted status of an object. */
  put(status: ObjectStatus): void;
  /** The object was deleted. */
  forget(id: string): void;
}

export interface StatusReporterOptions {
  /** Results by id. */
  readonly results: ReadonlyMap<string, ValidationResult>;
  readonly snapshots: SnapshotStore;
  readonly limiters: LimiterRegistry;
  /** Undefined when there is only one replica. */
  readonly reports: Pick<ReplicaReports, 'changed' | 'others' | 'onChange'> | undefined;
  readonly writers: readonly StatusWriter[];
  readonly schedule: Schedule;
  /** How long a lower number of limiters must last before it is reported; 0 reports it at once. */
  readonly settleMs: number;
  /** Longest time without yielding to streams and health checks. */
  readonly sliceMs: number;
}

/** Acknowledgements of hundreds of limiters arrive together. */
const delayMs = 100;

/** Input of the last status of an object. */
interface Reported {
  readonly result: ValidationResult;
  readonly domain: DomainStatus;
}

interface Observation {
  readonly resources: ReadonlyMap<string, SnapshotResource>;
  readonly subscribers: Subscribers;
  /** Whether the number of limiters has not been higher recently. */
  readonly isSettled: boolean;
}

/**
 * Keeps the status of every object up to date and passes changed ones to the writers.
 *
 * The number of limiters is in every status. Connections end at a maximum age, limiters move
 * between replicas, and all are away when a process has just started. While there were more of them
 * a moment ago, a domain that all had acknowledged stays acknowledged, and a process that has seen
 * none reports nothing. A new version and a rejection are reported at once.
 */
export class StatusReporter {
  readonly #context: Context;
  readonly #options: StatusReporterOptions;
  readonly #limiterCount: RecentPeak;
  readonly #reported = new Map<string, Reported>();
  readonly #statuses = new Map<string, ObjectStatus>();
  /** Status of every domain that is served. */
  readonly #domains = new Map<string, DomainStatus>();
  /** Limiters of other replicas. */
  readonly #reportedLimiters = new ReportedLimiters();
  readonly #stops: readonly ((() => void) | undefined)[];
  /** The first report waits for the reports of the other replicas. */
  #hasReported: boolean = false;
  #cancelReport: (() => void) | undefined;
  #isReporting: boolean = false;
  #changedStatuses = 0;
  #lastReport: Promise<void> | undefined;
  #closed: boolean = false;

  constructor(context: Context, options: StatusReporterOptions) {
    this.#context = context;
    this.#options = options;
    const { schedule, settleMs, snapshots, limiters, reports } = options;
    const changed = () => this.changed();
    this.#limiterCount = new RecentPeak(settleMs, { schedule, onFall: changed });
    this.#stops = [
      limiters.onChange(changed),
      reports?.onChange(changed),
      reports &&
        snapshots.onChange((snapshot) => {
          if (reports.others?.length !== 0) this.#reportedLimiters.remember(snapshot);
        }),
    ];
  }

  /** Statuses by id. */
  get statuses(): ReadonlyMap<string, ObjectStatus> {
    return this.#statuses;
  }

  /** Number of limiters of other replicas. */
  countElsewhere(): number {
    const groups = (this.#options.reports?.others ?? []).flatMap(({ report }) => report.groups);
    return groups.reduce((sum, { count }) => sum + count, 0);
  }

  /** Schedules a report after a change of objects, rules or limiters. */
  changed(): void {
    if (this.#closed) return;
    this.#cancelReport ??= this.#options.schedule(delayMs, () => {
      this.#cancelReport = undefined;
      if (this.#isReporting) this.changed();
      else this.#lastReport = this.#report();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelReport?.();
    for (const stop of this.#stops) stop?.();
    this.#limiterCount.close();
    await this.#lastReport;
  }

  async #report(): Promise<void> {
    const { trace, logger } = this.#context;
    const run = async (): Promise<number> => {
      const before = this.#changedStatuses;
      await runInSlices(this.#reportSteps(), { sliceMs: this.#options.sliceMs });
      return this.#changedStatuses - before;
    };
    try {
      await (trace === undefined ? run() : trace.report(run));
    } catch (error) {
      // A bug, or out of memory: the statuses stay, and the next change is another attempt.
      logger.error({ err: error }, 'failed to update the status of objects');
    }
  }

  /** Uses the state at the first step; later changes are for the next report. */
  *#reportSteps(): Steps<void> {
    this.#isReporting = true;
    try {
      const groups = this.#exchangeReports();
      const isSettled = this.#observeCount(groups);
      if (this.#limiterCount.isStarting()) return;
      const results = [...this.#options.results.values()];
      const resources = this.#options.snapshots.current()?.resources ?? new Map<string, SnapshotResource>();
      const subscribers = yield* indexSubscribers(groups);
      yield* this.#reportAll(results, { resources, subscribers, isSettled });
    } finally {
      this.#isReporting = false;
    }
  }

  /** Reports the limiters of this replica to others, and returns those of all replicas. */
  #exchangeReports(): readonly LimiterGroup[] {
    const { limiters, snapshots, reports } = this.#options;
    const groups = groupLimiters(limiters.settled());
    // Without other replicas, the next heartbeat is early enough.
    if (reports === undefined || reports.others?.length === 0) return groups;
    reports.changed();
    const snapshot = snapshots.current();
    if (snapshot !== undefined) this.#reportedLimiters.remember(snapshot);
    return [...groups, ...this.#reportedLimiters.groups(reports.others ?? [])];
  }

  #observeCount(groups: readonly LimiterGroup[]): boolean {
    const connected = groups.reduce((sum, { size }) => sum + size, 0);
    const { reports } = this.#options;
    const isKnown = reports === undefined || reports.others !== undefined || this.#hasReported;
    const isSettled = this.#limiterCount.observe(isKnown ? connected : 0);
    this.#hasReported ||= !this.#limiterCount.isStarting();
    return isSettled;
  }

  *#reportAll(results: readonly ValidationResult[], observation: Observation): Steps<void> {
    yield* this.#updateDomains(observation);
    const notServed = toDomainStatus({ name: '', version: '' }, observation.subscribers);
    for (const result of results) {
      if (this.#closed) return;
      const domain =
        this.#domains.get(result.domain ?? '') ??
        settle(this.#reported.get(result.id)?.domain, notServed, observation.isSettled);
      this.#reportObject(result, domain);
      yield;
    }
    for (const id of [...this.#reported.keys()]) if (!this.#options.results.has(id)) this.#forget(id);
  }

  *#updateDomains({ resources, subscribers, isSettled }: Observation): Steps<void> {
    for (const resource of resources.values()) {
      const { name } = resource;
      const before = this.#domains.get(name);
      const status = settle(before, toDomainStatus(resource, subscribers, before), isSettled);
      if (status !== before) this.#domains.set(name, status);
      yield;
    }
    if (this.#domains.size === resources.size) return;
    for (const name of [...this.#domains.keys()]) if (!resources.has(name)) this.#domains.delete(name);
  }

  #reportObject(result: ValidationResult, domain: DomainStatus): void {
    const before = this.#reported.get(result.id);
    // Nearly always: nothing has changed.
    if (before?.result === result && before.domain === domain) return;
    this.#reported.set(result.id, { result, domain });
    const status = toObjectStatus(result, domain);
    const known = this.#statuses.get(result.id);
    if (isDeepStrictEqual(known, status)) return;
    this.#statuses.set(result.id, status);
    this.#changedStatuses += 1;
    this.#context.trace?.reported(status);
    const isProblem = needsAction(status) || (known !== undefined && needsAction(known));
    for (const writer of this.#options.writers) if (isProblem || !writer.problemsOnly) writer.put(status);
  }

  #forget(id: string): void {
    this.#reported.delete(id);
    this.#statuses.delete(id);
    for (const writer of this.#options.writers) writer.forget(id);
  }
}

/** Returns `before` when nothing changed, or only the number of limiters, and it may recover. */
function settle(before: DomainStatus | undefined, now: DomainStatus, isSettled: boolean): DomainStatus {
  if (before === undefined || before === now) return now;
  const isSame =
    before.version === now.version &&
    before.connected === now.connected &&
    before.acknowledged === now.acknowledged &&
    before.programmed.message === now.programmed.message;
  return isSame || (!isSettled && onlyCountChanged(before, now)) ? before : now;
}

function onlyCountChanged(before: DomainStatus, now: DomainStatus): boolean {
  const isComplete = before.programmed.reason === 'Acknowledged' || before.version === '';
  return before.version === now.version && isComplete && now.programmed.reason !== 'Nacked';
}

/** Tells a count that has fallen for good from one that is about to recover. */
class RecentPeak {
  readonly #windowMs: number;
  readonly #schedule: Schedule;
  readonly #onFall: () => void;
  /** Higher counts of the past, with the functions that cancel their timers. */
  readonly #higher = new Map<number, () => void>();
  /** Before the first observation any number is possible. */
  #current = Number.POSITIVE_INFINITY;

  /** Remembers a higher count for the window and then calls `onFall`. */
  constructor(windowMs: number, options: { readonly schedule: Schedule; readonly onFall: () => void }) {
    this.#windowMs = windowMs;
    this.#schedule = options.schedule;
    this.#onFall = options.onFall;
  }

  /** Whether the count has not been higher within the window. */
  observe(count: number): boolean {
    if (this.#windowMs === 0) return true;
    if (count < this.#current) this.#remember(this.#current);
    this.#current = count;
    // The first limiter ends the start, however many there were before it.
    if (count > 0) this.#forget(Number.POSITIVE_INFINITY);
    for (const past of [...this.#higher.keys()]) if (past <= count) this.#forget(past);
    return this.#higher.size === 0;
  }

  /** Whether only 0 was observed, and not for the whole window. */
  isStarting(): boolean {
    return this.#higher.has(Number.POSITIVE_INFINITY);
  }

  close(): void {
    for (const past of [...this.#higher.keys()]) this.#forget(past);
  }

  #remember(count: number): void {
    this.#higher.get(count)?.();
    const cancel = this.#schedule(this.#windowMs, () => {
      this.#higher.delete(count);
      this.#onFall();
    });
    this.#higher.set(count, cancel);
  }

  #forget(count: number): void {
    this.#higher.get(count)?.();
    this.#higher.delete(count);
  }
}
