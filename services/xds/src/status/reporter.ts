import { isDeepStrictEqual } from 'node:util';
import { runInSlices, type Schedule, type Steps } from '@tollgate/kit/time';
import type { ClientRegistry } from '../ads/clients.ts';
import type { CommonSnapshot, SnapshotStore } from '../catalog/snapshot.ts';
import type { Condition, ValidationResult } from '../catalog/validation-result.ts';
import type { Context } from '../context.ts';
import {
  type ClientGroup,
  groupClients,
  indexSubscribers,
  type ServedDomain,
  type Subscribers,
} from './client-groups.ts';
import { listClasses, ReportedClients } from './client-report.ts';
import {
  countLimiters,
  type DomainLimiters,
  type DomainStatus,
  notServed,
  toAcknowledged,
  toDomainStatus,
} from './domain-status.ts';
import type { MatchedRules } from './matched-rules.ts';
import { needsAction, type ObjectStatus, toObjectStatus } from './object-status.ts';
import type { ReplicaReports } from './replica-reports.ts';
import type { StoredStatus } from './status-manifest.ts';

/** Receives statuses, from all replicas. */
export interface StatusWriter {
  /** Receives only statuses that need action, and the first one after them. Default false. */
  readonly problemsOnly?: boolean;
  /** Sets the wanted status of an object. */
  put(status: ObjectStatus, options?: StatusPutOptions): void;
  /** The object was deleted. */
  forget(id: string): void;
}

export interface StatusPutOptions {
  /** The owner has changed the object and waits for this status: it goes before others. */
  readonly isEdit: boolean;
}

/** The reports of the replicas. */
export type ReportExchange = Pick<ReplicaReports, 'changed' | 'others' | 'formerLimiters' | 'onChange'>;

export interface StatusReporterOptions {
  /** Results by id. */
  readonly results: ReadonlyMap<string, ValidationResult>;
  readonly snapshots: SnapshotStore;
  readonly limiters: ClientRegistry;
  /** Undefined when there is only one replica. */
  readonly reports: ReportExchange | undefined;
  readonly writers: readonly StatusWriter[];
  readonly schedule: Schedule;
  /** The status that an object has; undefined when the source has no statuses. */
  readonly stored: ((id: string) => StoredStatus | undefined) | undefined;
  /** Undefined when it is not observed which rules match. */
  readonly matchedRules: MatchedRules | undefined;
  /** How long limiters of an earlier process may take to reconnect; 0 expects none. */
  readonly startGraceMs: number;
  /** Interval at which it is looked which rules have matched. */
  readonly matchedIntervalMs: number;
  /** Longest time without yielding to streams and health checks. */
  readonly sliceMs: number;
}

/** Acknowledgements of hundreds of limiters arrive together. */
const delayMs = 100;

/** Input of the last status of an object. */
interface Reported {
  readonly result: ValidationResult;
  readonly domain: DomainStatus;
  readonly matched: Condition | undefined;
}

/** A domain of an object. */
export type DomainOfClass = Pick<ValidationResult, 'domain' | 'limiterClass'>;

/** Everything that is served, by class and domain. */
type ServedDomains = ReadonlyMap<string, ServedDomain>;

/** Key of a domain for the limiters of a class. A class contains no slash. */
const toKey = ({ domain = '', limiterClass = '' }: DomainOfClass): string => `${limiterClass}/${domain}`;

function listServed(snapshot: CommonSnapshot | undefined): ServedDomains {
  const served = new Map<string, ServedDomain>();
  for (const resource of snapshot?.resources.values() ?? [])
    served.set(toKey({ domain: resource.name }), resource);
  for (const [limiterClass, resources] of snapshot?.classes ?? [])
    for (const { name, version } of resources.values())
      served.set(toKey({ domain: name, limiterClass }), { name, version, limiterClass });
  return served;
}

/**
 * Keeps the status of every object up to date and passes changed ones to the writers.
 *
 * A status says whether an object was acknowledged, not by how many limiters: these come and go,
 * and the status of thousands of objects must not follow them. When a process starts, objects whose
 * status says so are acknowledged already; others are not while limiters reconnect.
 */
export class StatusReporter {
  readonly #context: Context;
  readonly #options: StatusReporterOptions;
  readonly #reported = new Map<string, Reported>();
  readonly #statuses = new Map<string, ObjectStatus>();
  /** Status of every domain that is served, by class and domain. */
  readonly #domains = new Map<string, DomainStatus>();
  /** Limiters of other replicas. */
  readonly #reportedLimiters = new ReportedClients({ unnamed: 'a limiter' });
  readonly #stops: readonly ((() => void) | undefined)[];
  /** Objects whose owners wait for a status. */
  readonly #edits = new Set<string>();
  /** Limiters as of the last report. */
  #subscribers: Subscribers | undefined;
  #served: { readonly snapshot: CommonSnapshot | undefined; readonly domains: ServedDomains } | undefined;
  #isStarting: boolean;
  #hasReported: boolean = false;
  #isMatchedDue: boolean = false;
  #cancelMatched: () => void = () => undefined;
  #cancelReport: (() => void) | undefined;
  #isReporting: boolean = false;
  #changedStatuses = 0;
  #lastReport: Promise<void> | undefined;
  #closed: boolean = false;

  constructor(context: Context, options: StatusReporterOptions) {
    this.#context = context;
    this.#options = options;
    const { schedule, startGraceMs, snapshots, limiters, reports } = options;
    const changed = () => this.changed();
    if (options.matchedRules !== undefined) this.#scheduleMatched();
    this.#isStarting = startGraceMs > 0;
    this.#stops = [
      this.#isStarting ? schedule(startGraceMs, () => this.#endStart()) : undefined,
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

  /** The limiters of a domain, as of the last report; undefined when it is not served. */
  limitersOf({ domain = '', limiterClass }: DomainOfClass): DomainLimiters | undefined {
    const snapshot = this.#options.snapshots.current();
    const resources = limiterClass === undefined ? snapshot?.resources : snapshot?.classes.get(limiterClass);
    const resource = resources?.get(domain);
    return resource && this.#subscribers && countLimiters({ ...resource, limiterClass }, this.#subscribers);
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

  /** The next report forgets deleted objects that had a status; others may be stored, too. */
  forgetUnreported(ids: readonly string[]): void {
    const unreported = ids.filter((id) => !this.#statuses.has(id));
    for (const id of unreported) for (const writer of this.#options.writers) writer.forget(id);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelReport?.();
    this.#cancelMatched();
    for (const stop of this.#stops) stop?.();
    await this.#lastReport;
  }

  #scheduleMatched(): void {
    const { schedule, matchedIntervalMs } = this.#options;
    this.#cancelMatched = schedule(matchedIntervalMs, () => {
      this.#isMatchedDue = true;
      this.changed();
      this.#scheduleMatched();
    });
  }

  #endStart(): void {
    this.#isStarting = false;
    this.changed();
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
      if (this.#haveAllReconnected()) this.#isStarting = false;
      const groups = this.#exchangeReports();
      const results = [...this.#options.results.values()];
      const snapshot = this.#options.snapshots.current();
      if (this.#served?.snapshot !== snapshot) this.#served = { snapshot, domains: listServed(snapshot) };
      const { domains } = this.#served ?? { domains: listServed(snapshot) };
      this.#subscribers = yield* indexSubscribers(
        groups,
        (limiterClass, domain) => snapshot?.classes.get(limiterClass)?.has(domain) === true,
      );
      yield* this.#updateDomains(domains, this.#subscribers, this.#findAcknowledged(results, domains));
      if (this.#isMatchedDue) yield* this.#evaluateMatched(groups);
      yield* this.#reportAll(results);
      this.#hasReported ||= snapshot !== undefined;
    } finally {
      this.#isReporting = false;
    }
  }

  /** Whether as many limiters have answered as an earlier process had. */
  #haveAllReconnected(): boolean {
    const { limiters, reports } = this.#options;
    const expected = reports?.formerLimiters ?? 0;
    return this.#isStarting && expected > 0 && limiters.settled().length >= expected;
  }

  *#evaluateMatched(groups: readonly ClientGroup[]): Steps<void> {
    this.#isMatchedDue = false;
    const { matchedRules, results } = this.#options;
    if (matchedRules === undefined) return;
    const areAllReporting =
      groups.length > 0 && groups.every(({ reportsMatches }) => reportsMatches === true);
    yield* matchedRules.evaluate(results, areAllReporting);
  }

  /** Reports the limiters of this replica to others, and returns those of all replicas. */
  #exchangeReports(): readonly ClientGroup[] {
    const { limiters, snapshots, reports, matchedRules } = this.#options;
    const groups = groupClients(limiters.settled());
    // Without other replicas, the next heartbeat is early enough.
    if (reports === undefined || reports.others?.length === 0) return groups;
    reports.changed();
    const snapshot = snapshots.current();
    if (snapshot !== undefined) this.#reportedLimiters.remember(snapshot);
    const others = reports.others ?? [];
    for (const limiterClass of listClasses(others)) {
      const ofClass = snapshots.currentOf(limiterClass);
      if (ofClass !== undefined && ofClass !== snapshot) this.#reportedLimiters.remember(ofClass);
    }
    for (const { report } of others)
      if (snapshot !== undefined) matchedRules?.addReported(report.matched ?? {}, snapshot);
    return [...groups, ...this.#reportedLimiters.groups(others)];
  }

  /** Domains of the first report that limiters have acknowledged before this process started. */
  #findAcknowledged(results: readonly ValidationResult[], served: ServedDomains): ReadonlySet<string> {
    const acknowledged = new Set<string>();
    const { stored } = this.#options;
    if (stored === undefined || this.#hasReported) return acknowledged;
    for (const result of results) {
      const resource = served.get(toKey(result));
      if (resource === undefined) continue;
      const { version, isProgrammed } = stored(result.id) ?? {};
      if (isProgrammed === true && version === resource.version) acknowledged.add(toKey(result));
    }
    return acknowledged;
  }

  *#updateDomains(
    served: ServedDomains,
    subscribers: Subscribers,
    acknowledged: ReadonlySet<string>,
  ): Steps<void> {
    const isStarting = this.#isStarting;
    for (const [key, domain] of served) {
      const known = this.#domains.get(key);
      const before = known ?? (acknowledged.has(key) ? toAcknowledged(domain.version) : undefined);
      const status = toDomainStatus(domain, subscribers, { before, isStarting });
      if (status !== known) this.#domains.set(key, status);
      yield;
    }
    if (this.#domains.size === served.size) return;
    for (const key of [...this.#domains.keys()]) if (!served.has(key)) this.#domains.delete(key);
  }

  *#reportAll(results: readonly ValidationResult[]): Steps<void> {
    for (const result of results) {
      if (this.#closed) return;
      this.#reportObject(result, this.#domains.get(toKey(result)) ?? notServed);
      yield;
    }
    for (const id of [...this.#reported.keys()]) if (!this.#options.results.has(id)) this.#forget(id);
  }

  #reportObject(result: ValidationResult, domain: DomainStatus): void {
    const { id } = result;
    const before = this.#reported.get(id);
    // Nearly always: nothing has changed.
    const matched = this.#options.matchedRules?.conditionOf(result);
    if (before?.result === result && before.domain === domain && before.matched === matched) return;
    if (this.#isUnknownYet(result, domain)) return;
    this.#reported.set(id, { result, domain, matched });
    const isProvisional = this.#isStarting && domain.programmed.reason === 'Pending';
    const status = toObjectStatus(result, domain, { matched, isProvisional });
    const known = this.#statuses.get(id);
    if (isDeepStrictEqual(known, status)) return;
    this.#statuses.set(id, status);
    this.#changedStatuses += 1;
    this.#context.trace?.reported(status);
    const isProblem = needsAction(status) || (known !== undefined && needsAction(known));
    const isEdit = this.#isEdit(status, known);
    for (const writer of this.#options.writers)
      if (isProblem || !writer.problemsOnly) writer.put(status, { isEdit });
  }

  /** While limiters reconnect, the status of an object that has not changed stays as it is. */
  #isUnknownYet({ id, generation }: ValidationResult, { version, isAcknowledged }: DomainStatus): boolean {
    if (!this.#isStarting || isAcknowledged) return false;
    const stored = this.#options.stored?.(id);
    return stored?.observedGeneration === generation && stored.version === version;
  }

  /** From a change of the object until all limiters have acknowledged it, or its owner must act. */
  #isEdit(status: ObjectStatus, known: ObjectStatus | undefined): boolean {
    const { id, uid, observedGeneration, programmed } = status;
    const isChanged =
      known === undefined
        ? this.#hasReported || this.#isNewerThanStored(status)
        : known.uid !== uid || known.observedGeneration !== observedGeneration;
    if (isChanged) this.#edits.add(id);
    return programmed.reason === 'Pending' ? this.#edits.has(id) : this.#edits.delete(id);
  }

  /** The object was edited before this process started. */
  #isNewerThanStored({ id, observedGeneration }: ObjectStatus): boolean {
    const stored = this.#options.stored?.(id)?.observedGeneration;
    return stored !== undefined && stored !== observedGeneration;
  }

  #forget(id: string): void {
    this.#reported.delete(id);
    this.#statuses.delete(id);
    this.#edits.delete(id);
    for (const writer of this.#options.writers) writer.forget(id);
  }
}
