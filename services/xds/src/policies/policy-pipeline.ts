import type { HealthComponent } from '@tollgate/kit/health';
import { monotonicNow, runInSlices, type Schedule, type Steps, scheduleByTimer } from '@tollgate/kit/time';
import { Batches } from '../batches.ts';
import type { Preview } from '../catalog/preview.ts';
import { type CommonSnapshot, SnapshotBuilder } from '../catalog/snapshot.ts';
import {
  type ConfigObject,
  formatOutages,
  type SourceEvent,
  type SourceOutage,
  type UnreadFile,
} from '../catalog/source.ts';
import { VersionHistory } from '../catalog/version-history.ts';
import type { Context } from '../context.ts';
import { type DeletionOptions, Deletions, type HoldState } from '../deletions.ts';
import { policyProblemReasons, unenforcedReasons } from '../metrics.ts';
import type { AllowedHosts } from './allowed-hosts.ts';
import { heldPolicies } from './held-policies.ts';
import type { KnownPolicy } from './known-policy.ts';
import { PolicyCatalog, type PolicyChange, type PolicyEvent } from './policy-catalog.ts';
import {
  formatFinding,
  type PolicyFinding,
  type PolicyReporter,
  type PolicyResult,
} from './policy-result.ts';
import type { PolicySource } from './policy-source.ts';
import { Rollout, type RolloutClients } from './rollout.ts';

export interface PolicyPipelineOptions {
  readonly source: PolicySource;
  readonly limiters: RolloutClients;
  readonly authServers: RolloutClients;
  /** Sets the rules that limiters get in addition to others, before auth servers get policies. */
  readonly setRules: (rules: CommonSnapshot) => void;
  /** Hosts that policies may have, by namespace. Default every host. */
  readonly allowedHosts?: AllowedHosts | undefined;
  /** Get the results of policies before the policies are published. */
  readonly reporters?: readonly PolicyReporter[];
  /** Changes are collected for this time before they are applied together. */
  readonly debounceMs: number;
  /** Whether no policy may be left. Otherwise auth servers keep the last ones. */
  readonly allowEmpty: boolean;
  /** Whether the first set may be empty. Otherwise auth servers deny, or keep what they have. */
  readonly allowEmptyStart: boolean;
  /** Undefined when deletions take effect at once. */
  readonly deletions?: DeletionOptions | undefined;
  /** A monotonic clock in milliseconds, for deletions. */
  readonly monotonicNow?: () => number;
  /** Longest time without yielding to streams and health checks. Default 5. */
  readonly sliceMs?: number;
  readonly schedule?: Schedule;
  /** Unhealthy while files with policies cannot be read. */
  readonly health?: HealthComponent;
}

/** State that the debug page shows. */
export interface PolicyState {
  /** Why auth servers do not get the policies; undefined when they do. */
  readonly notServedReason: string | undefined;
  /** Undefined while no deletion is held back. */
  readonly hold: HoldState | undefined;
  readonly outages: readonly SourceOutage[];
  /** Results by id. */
  readonly results: ReadonlyMap<string, PolicyResult>;
}

const defaultSliceMs = 5;

/** An API server that has just started refuses everything until it has loaded its roles. */
const forbiddenGraceMs = 10_000;

/** Interval of looking whether the CRD was installed: a list without policies is no event. */
const missingCheckMs = 2_000;

/** Interval of looking whether policies cannot be read because a privilege is missing. */
const forbiddenCheckMs = 2_000;

/** Turns the events of a source of AccessPolicies into what auth servers and limiters get. */
export class PolicyPipeline {
  /** The last versions of each policy. */
  readonly versions: VersionHistory;
  readonly #context: Context;
  readonly #options: PolicyPipelineOptions;
  readonly #catalog: PolicyCatalog;
  readonly #rollout: Rollout;
  readonly #batches: Batches;
  readonly #deletions: Deletions<KnownPolicy> | undefined;
  #cancelForbiddenCheck: (() => void) | undefined;
  #synced: boolean = false;
  /** Targets have changed since the last batch began. */
  #targetsChanged: boolean = false;
  #unread: readonly UnreadFile[] = [];
  #heldBackReason: string | undefined;
  /** The last change that was published completely. */
  #published: PolicyChange | undefined;
  /** Nothing is served because the CRD is missing. */
  #isMissing: boolean = false;
  #closed: boolean = false;

  constructor(context: Context, options: PolicyPipelineOptions) {
    const { source, deletions, allowEmpty, debounceMs } = options;
    const { schedule = scheduleByTimer, monotonicNow: now = monotonicNow } = options;
    this.#context = context;
    this.#options = options;
    this.versions = new VersionHistory(context);
    this.#catalog = new PolicyCatalog({ targets: source.targets, allowedHosts: options.allowedHosts });
    this.#rollout = new Rollout(context, { ...options, schedule });
    this.#deletions =
      deletions &&
      new Deletions(context, {
        ...deletions,
        ...{ source, schedule, now, allowEmpty, catalog: this.#catalog },
        noun: { one: 'policy', many: 'policies' },
        onDue: () => this.#batches.schedule(0),
        form: heldPolicies((object) => this.#catalog.read(object)),
        setHeld: (policies) => context.metrics.heldPolicies.set(policies),
      });
    this.#batches = new Batches({
      ...{ logger: context.logger, schedule, debounceMs },
      apply: (events) => this.#apply(events),
      dueInMs: () => {
        const dueMs = this.#deletions?.nextDueMs();
        return [
          dueMs === undefined ? undefined : dueMs - now(),
          this.#targetsChanged ? debounceMs : undefined,
          this.#isMissing ? missingCheckMs : undefined,
        ];
      },
    });
  }

  /** Evaluates an object that is created or changed, and changes nothing. */
  *preview(object: ConfigObject): Steps<Preview> {
    yield;
    const { problems, warnings } = this.#catalog.preview(object);
    // A problem that other objects may still end is a warning.
    return {
      problems: problems.map(({ source, field = '', message }) => ({ source, path: '', field, message })),
      warnings: warnings.map(formatFinding),
    };
  }

  /** The findings that an object would have if it were created or changed now. */
  *evaluate(object: ConfigObject): Steps<Pick<PolicyResult, 'problems' | 'warnings'>> {
    yield;
    const { problems, warnings } = this.#catalog.preview(object);
    const reasons: readonly string[] = policyProblemReasons;
    const isProblem = ({ reason }: PolicyFinding) => reasons.includes(reason);
    return {
      problems: [...problems, ...warnings.filter(isProblem)],
      warnings: warnings.filter((finding) => !isProblem(finding)),
    };
  }

  /** Rejects when the source cannot exist. */
  async start(): Promise<void> {
    const { source, debounceMs } = this.#options;
    let hasEvent = false;
    const onEvent = (event: SourceEvent) => {
      hasEvent = true;
      this.#batches.add(event);
    };
    await this.#deletions?.start();
    const onTargets = () => {
      this.#catalog.targetsChanged();
      if (!this.#targetsChanged) this.#batches.schedule(debounceMs);
      this.#targetsChanged = true;
    };
    await source.start({ onEvent, onTargets });
    this.#checkForbidden();
    await this.#deletions?.replaceGone(
      () => this.#closed || hasEvent,
      () => onEvent({ type: 'replaced', objects: [] }),
    );
  }

  /** Also closes the source. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelForbiddenCheck?.();
    this.#batches.stop();
    this.#rollout.close();
    await this.#options.source.close();
    await this.#deletions?.close();
    await this.#batches.settled();
  }

  /**
   * Why the service is not ready although limits are served: files with policies cannot be read.
   * Others need not have policies, and limiters need their limits.
   */
  notReadyReason(): string | undefined {
    const hasPolicies = this.#catalog.domainCount > 0 || this.#unread.some((file) => file.namesPolicies);
    return this.#unread.length > 0 && hasPolicies ? this.#heldBackReason : undefined;
  }

  state(): PolicyState {
    return {
      notServedReason: this.#notServedReason(),
      hold: this.#deletions?.state(),
      outages: this.#outages(),
      results: this.#catalog.results,
    };
  }

  #notServedReason(): string | undefined {
    const reason = this.#notSyncedReason() ?? this.#heldBackReason;
    if (reason !== undefined) return reason;
    const isServed = this.#options.authServers.snapshots.current() !== undefined;
    return isServed ? undefined : 'limiters have no rules yet, which come first';
  }

  #notSyncedReason(): string | undefined {
    const reasons = formatOutages(this.#outages());
    const suffix = reasons === '' ? '' : `: ${reasons}`;
    if (!this.#synced) return `access policies have not been read yet${suffix}`;
    const reason = this.#options.source.targets?.notSyncedReason();
    return reason && `${reason}${suffix}`;
  }

  /**
   * Limiters get their other rules although no policy could be read yet, because that lasts until
   * an operator grants a privilege. For policies that auth servers have from before, limiters
   * answer that they do not know them.
   */
  #checkForbidden(): void {
    if (this.#closed || this.#synced) return;
    const outages = this.#outages();
    const sinceMs = Math.max(...outages.map((outage) => outage.sinceMs));
    const isForbidden = outages.length > 0 && outages.every((outage) => outage.isForbidden === true);
    if (isForbidden && sinceMs + forbiddenGraceMs <= this.#context.nowMs()) {
      const reason = formatOutages(outages);
      this.#context.logger.error({ reason }, 'access policies cannot be read, serving other limits alone');
      this.#options.setRules(new SnapshotBuilder().build());
      return;
    }
    const { schedule = scheduleByTimer } = this.#options;
    this.#cancelForbiddenCheck = schedule(forbiddenCheckMs, () => this.#checkForbidden());
  }

  #outages(): readonly SourceOutage[] {
    return this.#options.source.outages?.() ?? [];
  }

  async #apply(events: readonly SourceEvent[]): Promise<void> {
    this.#targetsChanged = false;
    const change = await this.#evaluate(events);
    for (const event of events) {
      if (event.type !== 'replaced') continue;
      this.#unread = event.unread ?? [];
      this.#synced = true;
    }
    this.#report(change);
    this.#countProblems();
    const reason = this.#findHeldBackReason();
    const level = this.#unread.length > 0 ? 'error' : 'info';
    if (reason !== undefined && reason !== this.#heldBackReason)
      this.#context.logger[level]({ reason }, 'access policies held back, auth servers keep theirs or deny');
    this.#heldBackReason = reason;
    this.#options.health?.set(this.notReadyReason() === undefined);
    if (this.#closed || !this.#synced) return;
    // Limits need no routes, and limiters wait for them.
    const isWhole = reason === undefined && change.isResolved;
    if (isWhole && isSameContent(change, this.#published)) return;
    await this.#rollout.publish(isWhole ? change.access : undefined, change.documents);
    if (this.#closed || !isWhole) return;
    this.#published = change;
    for (const reporter of this.#options.reporters ?? []) reporter.published?.();
  }

  async #evaluate(events: readonly SourceEvent[]): Promise<PolicyChange> {
    const { sliceMs = defaultSliceMs } = this.#options;
    await runInSlices(this.versions.add(events), { sliceMs });
    const apply = (admitted: readonly PolicyEvent[]) =>
      runInSlices(this.#catalog.apply(admitted), { sliceMs });
    if (this.#deletions === undefined) return await apply(events);
    return await this.#deletions.apply(events, { isFirst: !this.#synced, apply });
  }

  /** Why auth servers do not get what the source has. */
  #findHeldBackReason(): string | undefined {
    const { authServers, allowEmpty, allowEmptyStart } = this.#options;
    const isFirst = authServers.snapshots.current() === undefined;
    this.#isMissing = false;
    const unread = this.#unread.map(({ source, message }) => `${source}: ${message}`).join('; ');
    if (isFirst && unread !== '')
      return `policies may be missing, and no version of this file is known: ${unread}`;
    if (this.#catalog.domainCount > 0) return undefined;
    // An xDS server that starts after the CRD was deleted must not open what policies protected.
    const missing = isFirst ? this.#options.source.missingReason?.() : undefined;
    this.#isMissing = missing !== undefined;
    if (missing !== undefined) return missing;
    if (isFirst ? allowEmptyStart : allowEmpty) return undefined;
    const setting = isFirst && allowEmpty ? 'XDS_ALLOW_NO_POLICIES' : 'XDS_ALLOW_EMPTY';
    return `there are no access policies, and ${setting}=false`;
  }

  #countProblems(): void {
    const results = [...this.#catalog.results.values()];
    for (const reason of policyProblemReasons) {
      const { length } = results.filter(({ problems }) => problems.some((one) => one.reason === reason));
      this.#context.metrics.policyProblems.set({ reason }, length);
    }
    for (const reason of unenforcedReasons) {
      const { length } = results.filter(({ ancestors }) =>
        ancestors.some(({ unenforced }) => unenforced?.reason === reason),
      );
      this.#context.metrics.unenforcedPolicies.set({ reason }, length);
    }
  }

  #report({ results, deleted }: PolicyChange): void {
    for (const { id, generation, problems } of results)
      this.versions.evaluated(id, generation, problems.length === 0);
    for (const reporter of this.#options.reporters ?? []) {
      for (const result of results) reporter.put(result);
      for (const id of deleted) reporter.forget(id);
    }
  }
}

const isSameContent = (one: PolicyChange, other: PolicyChange | undefined): boolean =>
  one.access === other?.access && one.documents === other.documents;
