import { runInSlices, type Schedule, scheduleByTimer } from '@tollgate/kit/time';
import { PendingEvents } from '../catalog/pending-events.ts';
import type { CommonSnapshot } from '../catalog/snapshot.ts';
import { formatOutages, type SourceEvent, type SourceOutage } from '../catalog/source.ts';
import type { Context } from '../context.ts';
import { PolicyCatalog, type PolicyChange } from './policy-catalog.ts';
import type { PolicyReporter, PolicyResult } from './policy-result.ts';
import type { PolicySource } from './policy-source.ts';
import { Rollout, type RolloutClients } from './rollout.ts';

export interface PolicyPipelineOptions {
  readonly source: PolicySource;
  readonly limiters: RolloutClients;
  readonly authServers: RolloutClients;
  /** Sets the rules that limiters get in addition to others, before auth servers get policies. */
  readonly setRules: (rules: CommonSnapshot) => void;
  /** Get the results of policies before the policies are published. */
  readonly reporters?: readonly PolicyReporter[];
  /** Changes are collected for this time before they are applied together. */
  readonly debounceMs: number;
  /** Longest time without yielding to streams and health checks. Default 5. */
  readonly sliceMs?: number;
  readonly schedule?: Schedule;
}

/** State that the debug page shows. */
export interface PolicyState {
  /** Why auth servers get no policies; undefined once they do. */
  readonly notServedReason: string | undefined;
  readonly outages: readonly SourceOutage[];
  /** Results by id. */
  readonly results: ReadonlyMap<string, PolicyResult>;
}

/** A batch that failed may fail again. */
const retryMs = 5_000;

const defaultSliceMs = 5;

/** Turns the events of a source of AccessPolicies into what auth servers and limiters get. */
export class PolicyPipeline {
  readonly #context: Context;
  readonly #options: PolicyPipelineOptions;
  readonly #schedule: Schedule;
  readonly #catalog: PolicyCatalog;
  readonly #rollout: Rollout;
  readonly #pending = new PendingEvents();
  #synced: boolean = false;
  /** Targets have changed since the last batch. */
  #targetsChanged: boolean = false;
  #cancelBatch: (() => void) | undefined;
  /** The batch being applied. */
  #batch: Promise<void> | undefined;
  #closed: boolean = false;

  constructor(context: Context, options: PolicyPipelineOptions) {
    const { source, schedule = scheduleByTimer } = options;
    this.#context = context;
    this.#options = options;
    this.#schedule = schedule;
    this.#catalog = new PolicyCatalog(source.targets);
    this.#rollout = new Rollout(context, { ...options, schedule });
  }

  /** Rejects when the source cannot exist. */
  async start(): Promise<void> {
    await this.#options.source.start({
      onEvent: (event) => this.#receive(event),
      onTargets: () => {
        this.#targetsChanged = true;
        this.#scheduleBatch(this.#options.debounceMs);
      },
    });
  }

  /** Also closes the source. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelBatch?.();
    this.#rollout.close();
    await this.#options.source.close();
    await this.#batch;
  }

  state(): PolicyState {
    return {
      notServedReason: this.#notServedReason(),
      outages: this.#outages(),
      results: this.#catalog.results,
    };
  }

  #notServedReason(): string | undefined {
    if (this.#options.authServers.snapshots.current() !== undefined) return undefined;
    const reason = this.#notSyncedReason();
    if (reason !== undefined) return reason;
    return 'limiters have no rules yet, which come first';
  }

  #notSyncedReason(): string | undefined {
    const reasons = formatOutages(this.#outages());
    if (!this.#synced) return `policies have not been read yet${reasons === '' ? '' : `: ${reasons}`}`;
    return this.#options.source.targets?.notSyncedReason();
  }

  #outages(): readonly SourceOutage[] {
    return this.#options.source.outages?.() ?? [];
  }

  #receive(event: SourceEvent): void {
    this.#pending.add(event);
    this.#scheduleBatch(this.#options.debounceMs);
  }

  /** The delay starts with the first event; further events do not extend it. */
  #scheduleBatch(delayMs: number): void {
    if (this.#closed || this.#batch !== undefined) return;
    if (this.#pending.isEmpty && !this.#targetsChanged) return;
    this.#cancelBatch ??= this.#schedule(delayMs, () => {
      this.#cancelBatch = undefined;
      this.#batch = this.#applyBatch();
    });
  }

  async #applyBatch(): Promise<void> {
    const events = this.#pending.take();
    this.#targetsChanged = false;
    let nextMs = this.#options.debounceMs;
    try {
      await this.#apply(events);
    } catch (error) {
      // A bug, or out of memory: the policies in force stay, and no event is lost.
      const { logger } = this.#context;
      logger.error({ err: error, events: events.length, retryMs }, 'failed to apply policies, retrying');
      this.#pending.putBack(events);
      this.#targetsChanged = true;
      nextMs = retryMs;
    }
    this.#batch = undefined;
    this.#scheduleBatch(nextMs);
  }

  async #apply(events: readonly SourceEvent[]): Promise<void> {
    const { sliceMs = defaultSliceMs } = this.#options;
    const change = await runInSlices(this.#catalog.apply(events), { sliceMs });
    if (events.some(({ type }) => type === 'replaced')) this.#synced = true;
    this.#report(change);
    if (this.#closed || this.#notSyncedReason() !== undefined) return;
    await this.#rollout.publish(change.access, change.documents);
  }

  #report({ results, deleted }: PolicyChange): void {
    for (const reporter of this.#options.reporters ?? []) {
      for (const result of results) reporter.put(result);
      for (const id of deleted) reporter.forget(id);
    }
  }
}
