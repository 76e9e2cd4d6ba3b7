import { setImmediate as nextTurn } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { Registry } from 'prom-client';
import type { Test } from 'tap';
import { ClientRegistry } from '../../src/ads/clients.ts';
import { SnapshotStore } from '../../src/catalog/snapshot.ts';
import type { SourceEvent, SourceOutage } from '../../src/catalog/source.ts';
import { Pipeline } from '../../src/pipeline.ts';
import type { PipelineOptions } from '../../src/pipeline-options.ts';
import { type ClientReport, type ReplicaReport, summarizeClients } from '../../src/status/client-report.ts';
import type { ObjectStatus } from '../../src/status/object-status.ts';
import { type ManualSchedule, manualSchedule } from './manual-schedule.ts';
import { recordingContext } from './recording-logger.ts';

/** A pipeline whose source, time and limiters are the test's. */
export interface TestPipeline {
  readonly pipeline: Pipeline;
  readonly store: SnapshotStore;
  readonly limiters: ClientRegistry;
  readonly time: ManualSchedule;
  /** Versions of all snapshots that came into force. */
  readonly served: readonly string[];
  /** Statuses that the writer was given, the last one last. */
  readonly written: ObjectStatus[];
  /** Ids and reasons of the statuses that were marked as those of edits. */
  readonly edits: string[];
  readonly forgotten: readonly string[];
  /** Lines of the log. */
  readonly lines: readonly Record<string, unknown>[];
  readonly registry: Registry;
  /** The last report of this replica. */
  published(): ClientReport | undefined;
  /** Sets the reports of other replicas. */
  setOthers(others: readonly ReplicaReport[]): void;
  /** Sets the number of limiters of an earlier process. */
  setFormer(limiters: number): void;
  tell(...events: readonly SourceEvent[]): void;
  /** Sets the outages of the source. */
  lose(...outages: readonly SourceOutage[]): void;
  /** Advances time until all events are applied and the statuses reported. */
  settle(): Promise<void>;
}

/** Starts one; it is closed when the test ends. */
export async function startPipeline(
  t: Test,
  {
    hasReplicas = false,
    nowMs = () => 5_000,
    ...options
  }: Partial<PipelineOptions> & { readonly hasReplicas?: boolean; readonly nowMs?: () => number } = {},
): Promise<TestPipeline> {
  const time = manualSchedule();
  const store = new SnapshotStore(nowMs);
  const limiters = new ClientRegistry({ schedule: time.schedule });
  const served: string[] = [];
  const written: ObjectStatus[] = [];
  const edits: string[] = [];
  const forgotten: string[] = [];
  const { context, registry, lines } = recordingContext({ nowMs });
  const replicas = otherReplicas(() => summarizeClients(limiters.settled(), (name) => store.currentOf(name)));
  let tell: (event: SourceEvent) => void = () => undefined;
  let lost: readonly SourceOutage[] = [];
  store.onChange(({ version }) => served.push(version));
  const pipeline = new Pipeline(context, {
    source: {
      async start(onEvent) {
        tell = onEvent;
      },
      outages: () => lost,
      close: async () => undefined,
    },
    snapshots: store,
    limiters,
    writers: [
      {
        put(status, options) {
          written.push(status);
          if (options?.isEdit === true) edits.push(`${status.id} ${status.programmed.reason}`);
        },
        forget: (id) => forgotten.push(id),
      },
    ],
    reports: hasReplicas ? replicas.reports : undefined,
    schedule: time.schedule,
    debounceMs: 5,
    allowEmpty: true,
    startGraceMs: 0,
    // In one slice, so that a timer of the manual schedule has completed when it returns.
    sliceMs: Number.POSITIVE_INFINITY,
    ...options,
  });
  t.teardown(() => pipeline.close());
  await pipeline.start();
  return {
    pipeline,
    store,
    limiters,
    time,
    served,
    written,
    edits,
    forgotten,
    lines,
    registry,
    published: replicas.published,
    setOthers: replicas.setOthers,
    setFormer: replicas.setFormer,
    tell(...events) {
      for (const event of events) tell(event);
    },
    lose(...outages) {
      lost = outages;
    },
    async settle() {
      time.advance(5);
      // A batch in one slice ends before the next turn, and each batch plans a report.
      await nextTurn();
      const isPlanned = () => time.isDueWithin(100);
      await awaitUntil(isPlanned, { what: 'the changes to be taken in', everyMs: 1 });
      time.advance(100);
    },
  };
}

type Reports = NonNullable<PipelineOptions['reports']>;

/** Reports of other replicas, set by the test. */
function otherReplicas(summarize: () => ClientReport) {
  let published: ClientReport | undefined;
  const listeners = new Set<() => void>();
  const reports: { -readonly [Key in keyof Reports]: Reports[Key] } = {
    others: undefined,
    formerLimiters: undefined,
    changed() {
      published = summarize();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return {
    reports,
    published: () => published,
    setOthers(others: readonly ReplicaReport[]) {
      reports.others = others;
      for (const listener of listeners) listener();
    },
    setFormer(limiters: number) {
      reports.formerLimiters = limiters;
    },
  };
}
