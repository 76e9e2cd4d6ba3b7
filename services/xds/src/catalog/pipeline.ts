import type { Logger } from '@tollgate/kit/logger';
import { runInSlices } from '@tollgate/kit/steps';
import type { ClientRegistry } from '../ads/limiters.ts';
import type { XdsMetrics } from '../metrics.ts';
import {
  outageText,
  type ResourceSource,
  type SourceEvent,
  type SourceOutage,
  type SourceProblem,
} from '../sources/source.ts';
import type { ObjectStatus } from '../status/conditions.ts';
import { createLimiterFleet, type LimiterReports } from '../status/reported-limiters.ts';
import { createStatusReporter } from '../status/reporter.ts';
import type { StatusWriter } from '../status/writer.ts';
import type { PipelineTrace } from '../tracing.ts';
import type { Verdict } from './accepted.ts';
import { type CatalogChange, createCatalog } from './catalog.ts';
import { countObjects, createPipelineLog } from './pipeline-log.ts';
import { encodeRules, hashContent, type Snapshot, type SnapshotStore } from './snapshot.ts';

/** Events that wait to be taken in. Of each object only the last one counts, so that there are never more than objects. */
export interface PendingEvents {
  add(event: SourceEvent): void;
  readonly isEmpty: boolean;
  /** Hands all of them over, and is empty again. */
  take(): SourceEvent[];
  /** Takes events back that were handed over, as older than those that have come since. */
  putBack(events: readonly SourceEvent[]): void;
}

/** Makes an empty collection. */
export function createPendingEvents(): PendingEvents {
  let list: SourceEvent | undefined;
  /** Those after the list, by the id of the object. */
  let single = new Map<string, SourceEvent>();

  function add(event: SourceEvent): void {
    if (event.type === 'replaced') {
      list = event;
      single = new Map();
    } else if (event.type === 'changed') single.set(event.object.id, event);
    else single.set(event.id, event);
  }

  function take(): SourceEvent[] {
    const events = list === undefined ? [...single.values()] : [list, ...single.values()];
    list = undefined;
    single = new Map();
    return events;
  }

  return {
    add,
    get isEmpty() {
      return list === undefined && single.size === 0;
    },
    take,
    putBack(events) {
      const newer = take();
      for (const event of events) add(event);
      for (const event of newer) add(event);
    },
  };
}

/** Runs something once, later; the function it returns takes that back. */
export type Schedule = (delayMs: number, run: () => void) => () => void;

/** By the timers of the process, which keep it alive no longer. */
export const scheduleByTimer: Schedule = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  timer.unref();
  return () => clearTimeout(timer);
};

/** What the pipeline takes. */
export interface PipelineDeps {
  readonly source: ResourceSource;
  readonly store: SnapshotStore;
  readonly clients: ClientRegistry;
  /** Undefined where objects have no status. Whoever gives it starts and closes it. */
  readonly writer?: Pick<StatusWriter, 'put' | 'forget'> | undefined;
  /** Undefined where a replica knows of no other. Whoever gives it starts and closes it. */
  readonly reports?: LimiterReports | undefined;
  readonly metrics: XdsMetrics;
  readonly logger: Logger;
  /** Undefined when nothing is traced. */
  readonly trace?: PipelineTrace | undefined;
  /** Unix time; the system's when absent. */
  readonly nowMs?: () => number;
  /** Timers; the process' own when absent. */
  readonly schedule?: Schedule;
}

/** How the pipeline works. */
export interface PipelineOptions {
  /** How long changes are collected before limiters are told of them together. */
  readonly debounceMs: number;
  /** Whether an empty set is served. With false, limiters keep the last one, and a new process serves nothing. */
  readonly allowEmpty: boolean;
  /** How long a domain is kept for a namespace whose last object for it is gone. Default 0. */
  readonly domainGraceMs?: number;
  /** How long limiters that have gone are expected back before every status tells of it. Default 15000 with a writer, 0 without. */
  readonly settleMs?: number;
  /** Others have their turn this often while many objects are taken in or told of: streams, health checks. Default 5. */
  readonly sliceMs?: number;
}

/** From the objects of a source to the rules that are served and the status of the objects. */
export interface Pipeline {
  /** Begins to follow the source; rejects when the source cannot be there. */
  start(): Promise<void>;
  /** Ends it, source included. */
  close(): Promise<void>;
  /** Why nothing is served yet, for people; undefined once something is. */
  notReady(): string | undefined;
  /** What the debug page shows. */
  state(): PipelineState;
}

/** Where the pipeline stands. */
export interface PipelineState {
  /** Whether the source has told of all its objects. */
  readonly synced: boolean;
  /** Whether there is no rule left and limiters are not told. */
  readonly emptyHeldBack: boolean;
  /** Unix time of the last event; undefined before the first. */
  readonly lastEventMs: number | undefined;
  /** What keeps the source from following its objects now. */
  readonly outages: readonly SourceOutage[];
  /** What the source could not take for objects. */
  readonly problems: readonly SourceProblem[];
  /** Of every object, by id. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Of every object, by id; a moment later than the verdicts. */
  readonly statuses: ReadonlyMap<string, ObjectStatus>;
  /** Limits that are served. */
  readonly rules: number;
  /** Limiters that are connected to other replicas. */
  readonly limitersElsewhere: number;
}

/** What failed once may fail each time: it is neither given up nor tried all the time. */
const retryMs = 5_000;

/** Longest time of a timer. */
const maxTimerMs = 2 ** 31 - 1;

/** Not felt by a stream or a health check that waits for it. */
const defaultSliceMs = 5;

/**
 * A limiter that has lost its connection calls again after five seconds at most, and once more if that was in vain; its
 * replica reports it within a second. A change of the number of limiters is a write for every object, and nobody waits for it.
 */
const defaultSettleMs = 15_000;

/** Connects a source with the snapshot store and the status of its objects. */
export function createPipeline(deps: PipelineDeps, options: PipelineOptions): Pipeline {
  const { source, store, clients, writer, reports, metrics, logger, trace } = deps;
  const { debounceMs, allowEmpty, sliceMs = defaultSliceMs } = options;
  const { settleMs = writer === undefined ? 0 : defaultSettleMs } = options;
  const { nowMs = Date.now, schedule = scheduleByTimer } = deps;
  const catalog = createCatalog({
    encode: encodeRules,
    hash: hashContent,
    graceMs: options.domainGraceMs ?? 0,
  });
  const pending = createPendingEvents();
  const log = createPipelineLog(logger);
  const fleet = createLimiterFleet({ clients, store, reports });
  const { verdicts } = catalog;
  const reporter = createStatusReporter({
    verdicts,
    store,
    fleet,
    writer,
    schedule,
    settleMs,
    sliceMs,
    logger,
    trace,
  });
  let problems: readonly SourceProblem[] = [];
  let synced = false;
  let emptyHeldBack = false;
  let servedRules = 0;
  let lastEventMs: number | undefined;
  let cancelTurn: (() => void) | undefined;
  let cancelExpiry: (() => void) | undefined;
  let turn: Promise<void> | undefined;
  let closed = false;

  const outages = (): readonly SourceOutage[] => source.outages?.() ?? [];

  function onEvent(event: SourceEvent): void {
    if (closed) return;
    lastEventMs = nowMs();
    metrics.lastEventTimestampSeconds.set(lastEventMs / 1000);
    metrics.sourceEvents.inc({ type: event.type });
    pending.add(event);
    planTurn();
  }

  /** The time runs from the first event: one that is followed by many others does not wait longer. */
  function planTurn(delayMs = debounceMs): void {
    if (closed || turn !== undefined || pending.isEmpty) return;
    cancelTurn ??= schedule(delayMs, () => {
      cancelTurn = undefined;
      turn = takeTurn();
    });
  }

  async function takeTurn(): Promise<void> {
    const events = pending.take();
    let nextMs = debounceMs;
    try {
      await (trace === undefined ? takeIn(events) : trace.reconcile(events.length, () => takeIn(events)));
    } catch (error) {
      // A bug, or no memory left: what is served stays, and nothing that has happened is forgotten.
      logger.error({ err: error, events: events.length, retryMs }, 'changes of objects not taken in');
      pending.putBack(events);
      nextMs = retryMs;
    }
    turn = undefined;
    planExpiry();
    planTurn(nextMs);
  }

  /** A domain whose grace period is over is free without an event. */
  function planExpiry(): void {
    cancelExpiry?.();
    const expiryMs = catalog.nextExpiryMs();
    if (closed || expiryMs === undefined) return;
    cancelExpiry = schedule(Math.min(Math.max(0, expiryMs - nowMs()), maxTimerMs), () => {
      cancelExpiry = undefined;
      // A turn that goes on plans it again.
      if (!closed && turn === undefined) turn = takeTurn();
    });
  }

  async function takeIn(events: readonly SourceEvent[]): Promise<void> {
    const validate = (): Promise<CatalogChange> => runInSlices(catalog.apply(events, nowMs()), { sliceMs });
    const change = await (trace === undefined ? validate() : trace.validate(validate));
    if (!closed) publish(events, change);
  }

  function publish(events: readonly SourceEvent[], { snapshot, verdicts, forgotten }: CatalogChange): void {
    for (const event of events) if (event.type === 'replaced') takeList(event.problems);
    log.verdicts(verdicts);
    log.forgotten(forgotten);
    if (synced) serve(snapshot);
    countObjects(metrics, catalog.verdicts.values());
    reporter.changed();
  }

  function takeList(told: readonly SourceProblem[]): void {
    problems = told;
    log.problems(told);
    synced = true;
    metrics.synced.set(1);
  }

  function serve(snapshot: Snapshot): void {
    const domains = snapshot.resources.size;
    const wasHeldBack = emptyHeldBack;
    emptyHeldBack = domains === 0 && !allowEmpty;
    metrics.emptyHeldBack.set(emptyHeldBack ? 1 : 0);
    if (emptyHeldBack) {
      if (!wasHeldBack) log.emptyHeldBack(store.current());
      return;
    }
    const before = store.current();
    if (before?.version === snapshot.version) return;
    servedRules = catalog.rules;
    metrics.rules.set(servedRules);
    if (trace === undefined) store.set(snapshot);
    else trace.snapshot(snapshot, { 'tollgate.xds.rules': servedRules }, () => store.set(snapshot));
    metrics.domains.set(domains);
    log.served(snapshot, { rules: servedRules, before });
  }

  return {
    start: () => source.start(onEvent),
    async close() {
      closed = true;
      cancelTurn?.();
      cancelExpiry?.();
      await reporter.close();
      await source.close();
      await turn;
    },
    notReady() {
      if (store.current() !== undefined) return undefined;
      if (emptyHeldBack)
        return 'there is no limit, and XDS_ALLOW_EMPTY=false keeps limiters from being told so';
      const reasons = outageText(outages());
      return `the source has not told of its objects yet${reasons === '' ? '' : `: ${reasons}`}`;
    },
    state: () => ({
      synced,
      emptyHeldBack,
      lastEventMs,
      outages: outages(),
      problems,
      verdicts: catalog.verdicts,
      statuses: reporter.statuses,
      rules: servedRules,
      limitersElsewhere: fleet.elsewhere(),
    }),
  };
}
