import { monotonicNow, runInSlices, type Steps, scheduleByTimer } from '@tollgate/kit/time';
import { Batches } from './batches.ts';
import { Catalog, type CatalogChange, type CatalogEvent } from './catalog/catalog.ts';
import type { LimitsPreview } from './catalog/preview.ts';
import { addResources, type CommonSnapshot, countDomains, isSameSnapshot } from './catalog/snapshot.ts';
import {
  type ConfigObject,
  formatOutages,
  type SourceEvent,
  type SourceOutage,
  type SourceProblem,
} from './catalog/source.ts';
import type { CatalogObject } from './catalog/validation.ts';
import { acceptedReasons } from './catalog/validation-result.ts';
import { VersionHistory } from './catalog/version-history.ts';
import type { Context } from './context.ts';
import { Deletions, heldConfigs } from './deletions.ts';
import { PipelineLog } from './pipeline-log.ts';
import type { PipelineOptions, PipelineState } from './pipeline-options.ts';
import { MatchedRules } from './status/matched-rules.ts';
import { StatusReporter } from './status/reporter.ts';

/** Interval at which it is looked which rules have matched. */
const maxMatchedIntervalMs = 60_000;

const defaultSliceMs = 5;

/** A limiter that loses its connection reconnects within five seconds. */
const defaultStartGraceMs = 5_000;

/**
 * Turns the events of a source into the snapshot that is served and the statuses of the objects.
 */
export class Pipeline {
  /** Which rules have matched requests; undefined when this is not observed. */
  readonly matchedRules: MatchedRules | undefined;
  /** The last versions of each object. */
  readonly versions: VersionHistory;
  readonly #context: Context;
  readonly #options: PipelineOptions;
  readonly #sliceMs: number;
  readonly #catalog: Catalog;
  /** Rules of RateLimitConfigs as of the last batch. */
  #configured: CommonSnapshot | undefined;
  /** Rules of access policies. */
  #policyRules: CommonSnapshot | undefined;
  readonly #log: PipelineLog;
  readonly #deletions: Deletions<CatalogObject> | undefined;
  readonly #batches: Batches;
  readonly #reporter: StatusReporter;
  #problems: readonly SourceProblem[] = [];
  #synced: boolean = false;
  #emptyHeldBack: boolean = false;
  #servedRules = 0;
  #lastEventMs: number | undefined;
  #closed: boolean = false;

  constructor(context: Context, options: PipelineOptions) {
    const {
      snapshots,
      limiters,
      reports,
      stored,
      writers = [],
      domainGraceMs = 0,
      anyDomainNamespaces,
    } = options;
    const { schedule = scheduleByTimer, sliceMs = defaultSliceMs } = options;
    const { startGraceMs = writers.length === 0 ? 0 : defaultStartGraceMs } = options;
    this.#context = context;
    this.#options = options;
    this.#sliceMs = sliceMs;
    this.versions = new VersionHistory(context);
    this.#catalog = new Catalog({
      graceMs: domainGraceMs,
      ...(anyDomainNamespaces && { anyDomainNamespaces }),
    });
    this.#log = new PipelineLog(context.logger);
    const { source, deletions, allowEmpty, monotonicNow: now = monotonicNow } = options;
    this.#deletions =
      deletions &&
      new Deletions(context, {
        ...deletions,
        ...{ source, schedule, now, allowEmpty, catalog: this.#catalog },
        onDue: () => this.#batches.schedule(0),
        form: heldConfigs,
        setHeld: (domains) => context.metrics.heldDomains.set(domains),
      });
    this.#batches = new Batches({
      ...{ logger: context.logger, schedule, debounceMs: options.debounceMs },
      apply: (events) => this.#apply(events),
      dueInMs: () => this.#dueInMs(now()),
    });
    const { results } = this.#catalog;
    const { unmatchedAfterMs = 0 } = options;
    this.matchedRules =
      unmatchedAfterMs === 0
        ? undefined
        : new MatchedRules({
            nowMs: context.nowMs,
            documentOf: (id) => this.#catalog.documentOf(id),
            unmatchedAfterMs,
          });
    this.#reporter = new StatusReporter(context, {
      results,
      snapshots,
      limiters,
      reports,
      writers,
      stored,
      matchedRules: this.matchedRules,
      matchedIntervalMs: Math.min(unmatchedAfterMs, maxMatchedIntervalMs),
      schedule,
      startGraceMs,
      sliceMs,
    });
  }

  /** Rejects when the source cannot exist. */
  async start(): Promise<void> {
    await this.#deletions?.start();
    await this.#options.source.start((event) => this.#receive(event));
    await this.#deletions?.replaceGone(
      () => this.#closed || this.#lastEventMs !== undefined,
      () => this.#receive({ type: 'replaced', objects: [] }),
    );
  }

  /** Also closes the source. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#batches.stop();
    await this.#reporter.close();
    await this.#options.source.close();
    await this.#deletions?.close();
    await this.#batches.settled();
  }

  /** Returns the result of an object if it were created or changed now. Changes nothing. */
  preview(object: ConfigObject): Steps<LimitsPreview> {
    const isDeleted = (id: string): boolean =>
      this.#batches.isDeleted(id) ?? this.#deletions?.isDeleted(id) === true;
    return this.#catalog.preview(object, this.#context.nowMs(), isDeleted);
  }

  /** Sets the rules of access policies, which are served with the others. */
  setPolicyRules(rules: CommonSnapshot): void {
    this.#policyRules = rules;
    this.#serve();
    this.#reporter.changed();
  }

  /** Why nothing is served yet; undefined once something is. */
  notReadyReason(): string | undefined {
    if (this.#options.snapshots.current() !== undefined) return undefined;
    if (this.#emptyHeldBack)
      return 'there are no limits, and XDS_ALLOW_EMPTY=false prevents serving an empty set';
    if (this.#synced && this.#waitsForPolicies()) return this.#options.policiesMissingReason?.();
    const reasons = formatOutages(this.#outages());
    return `the source has not synced yet${reasons === '' ? '' : `: ${reasons}`}`;
  }

  state(): PipelineState {
    return {
      synced: this.#synced,
      emptyHeldBack: this.#emptyHeldBack,
      hold: this.#deletions?.state(),
      lastEventMs: this.#lastEventMs,
      outages: this.#outages(),
      problems: this.#problems,
      results: this.#catalog.results,
      statuses: this.#reporter.statuses,
      rules: this.#servedRules,
      limitersElsewhere: this.#reporter.countElsewhere(),
      limitersOf: (domain) => this.#reporter.limitersOf(domain),
    };
  }

  #outages(): readonly SourceOutage[] {
    return this.#options.source.outages?.() ?? [];
  }

  #receive(event: SourceEvent): void {
    if (this.#closed) return;
    const { nowMs, metrics } = this.#context;
    this.#lastEventMs = nowMs();
    metrics.lastEventTimestampSeconds.set(this.#lastEventMs / 1000);
    metrics.sourceEvents.inc({ type: event.type });
    this.#batches.add(event);
  }

  /** The end of a reservation, and of the delay of a deletion, change domains without an event. */
  #dueInMs(monotonicMs: number): readonly (number | undefined)[] {
    const expiryMs = this.#catalog.nextExpiryMs();
    const deletionMs = this.#deletions?.nextDueMs();
    return [
      expiryMs === undefined ? undefined : expiryMs - this.#context.nowMs(),
      deletionMs === undefined ? undefined : deletionMs - monotonicMs,
    ];
  }

  async #apply(events: readonly SourceEvent[]): Promise<void> {
    const { trace } = this.#context;
    const validate = () => this.#validate(events);
    const apply = async () => {
      const change = await (trace === undefined ? validate() : trace.validate(validate));
      if (!this.#closed) this.#publish(events, change);
    };
    await (trace === undefined ? apply() : trace.reconcile(events.length, apply));
  }

  async #validate(events: readonly SourceEvent[]): Promise<CatalogChange> {
    await runInSlices(this.versions.add(events), { sliceMs: this.#sliceMs });
    const apply = (admitted: readonly CatalogEvent[]) =>
      runInSlices(this.#catalog.apply(admitted, this.#context.nowMs()), { sliceMs: this.#sliceMs });
    if (this.#deletions === undefined) return await apply(events);
    return await this.#deletions.apply(events, { isFirst: !this.#synced, apply });
  }

  #publish(events: readonly SourceEvent[], { snapshot, results, deleted }: CatalogChange): void {
    const { metrics } = this.#context;
    for (const event of events) {
      if (event.type !== 'replaced') continue;
      this.#problems = event.problems ?? [];
      this.#log.problems(this.#problems);
      this.#synced = true;
      metrics.synced.set(1);
    }
    for (const { id, generation, accepted } of results)
      this.versions.evaluated(id, generation, accepted.status === 'True');
    this.#log.results(results);
    this.#log.deleted(deleted);
    this.#reporter.forgetUnreported(deleted);
    this.#configured = snapshot;
    this.#serve();
    this.#countObjects();
    this.#reporter.changed();
  }

  #countObjects(): void {
    const counts = new Map<string, number>();
    for (const { accepted } of this.#catalog.results.values())
      counts.set(accepted.reason, (counts.get(accepted.reason) ?? 0) + 1);
    for (const reason of acceptedReasons)
      this.#context.metrics.objects.set({ reason }, counts.get(reason) ?? 0);
  }

  #waitsForPolicies(): boolean {
    return this.#options.policiesMissingReason !== undefined && this.#policyRules === undefined;
  }

  #serve(): void {
    const { metrics, trace } = this.#context;
    const { snapshots, allowEmpty } = this.#options;
    const [configured, ofPolicies] = [this.#configured, this.#policyRules];
    if (!this.#synced || configured === undefined || this.#waitsForPolicies()) return;
    const snapshot = ofPolicies === undefined ? configured : addResources(configured, ofPolicies);
    const domains = countDomains(snapshot);
    const before = snapshots.current();
    const wasHeldBack = this.#emptyHeldBack;
    this.#emptyHeldBack = domains === 0 && !allowEmpty;
    metrics.emptyHeldBack.set(this.#emptyHeldBack ? 1 : 0);
    if (this.#emptyHeldBack) {
      if (!wasHeldBack) this.#log.emptyHeldBack(before);
      return;
    }
    if (isSameSnapshot(snapshot, before)) return;
    const { rules } = this.#catalog;
    this.#servedRules = rules;
    metrics.rules.set(rules);
    if (trace === undefined) snapshots.set(snapshot);
    else trace.snapshot(snapshot, { 'tollgate.xds.rules': rules }, () => snapshots.set(snapshot));
    metrics.domains.set(domains);
    this.#log.served(snapshot, before, rules);
  }
}
