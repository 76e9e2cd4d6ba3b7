import { awaitUntil } from '@tollgate/testkit/await-until';
import { Registry } from 'prom-client';
import type { Test } from 'tap';
import { type ClientRegistry, createClientRegistry } from '../../src/ads/limiters.ts';
import { createPipeline, type Pipeline, type PipelineOptions } from '../../src/catalog/pipeline.ts';
import { createSnapshotStore, type SnapshotStore } from '../../src/catalog/snapshot.ts';
import { createXdsMetrics } from '../../src/metrics.ts';
import type { SourceEvent, SourceOutage } from '../../src/sources/source.ts';
import type { ObjectStatus } from '../../src/status/conditions.ts';
import type { LimiterReport } from '../../src/status/limiter-report.ts';
import type { LimiterReports, ReplicaReport } from '../../src/status/reported-limiters.ts';
import { type ManualSchedule, manualSchedule } from './manual-schedule.ts';
import { recordingLogger } from './recording-logger.ts';

/** A pipeline whose source, time and limiters are the test's. */
export interface TestPipeline {
  readonly pipeline: Pipeline;
  readonly store: SnapshotStore;
  readonly clients: ClientRegistry;
  readonly time: ManualSchedule;
  /** Versions of all snapshots that came into force. */
  readonly served: readonly string[];
  /** What the writer was given, the last one last. */
  readonly written: ObjectStatus[];
  readonly forgotten: readonly string[];
  /** Lines of the log. */
  readonly lines: readonly Record<string, unknown>[];
  readonly registry: Registry;
  /** What the other replicas were told last. */
  published(): LimiterReport | undefined;
  /** Other replicas tell of their limiters. */
  hear(others: readonly ReplicaReport[]): void;
  tell(...events: readonly SourceEvent[]): void;
  /** From now on, this keeps the source from following its objects. */
  lose(...outages: readonly SourceOutage[]): void;
  /** Lets so much time pass that all that was told is taken in, and the status of objects is told. */
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
  const store = createSnapshotStore();
  const clients = createClientRegistry({ schedule: time.schedule });
  const registry = new Registry();
  const served: string[] = [];
  const written: ObjectStatus[] = [];
  const forgotten: string[] = [];
  const { logger, lines } = recordingLogger();
  const replicas = otherReplicas();
  let tell: (event: SourceEvent) => void = () => undefined;
  let lost: readonly SourceOutage[] = [];
  store.onChange(({ version }) => served.push(version));
  const pipeline = createPipeline(
    {
      source: {
        async start(onEvent) {
          tell = onEvent;
        },
        outages: () => lost,
        close: async () => undefined,
      },
      store,
      clients,
      writer: {
        put: (status) => written.push(status),
        forget: (id) => forgotten.push(id),
      },
      ...(hasReplicas && { reports: replicas.reports }),
      metrics: createXdsMetrics(registry),
      logger,
      nowMs,
      schedule: time.schedule,
    },
    // In one slice, so that what a turn of the manual schedule begins has ended when it returns.
    { debounceMs: 5, allowEmpty: true, settleMs: 0, sliceMs: Number.POSITIVE_INFINITY, ...options },
  );
  t.teardown(pipeline.close);
  await pipeline.start();
  return {
    pipeline,
    store,
    clients,
    time,
    served,
    written,
    forgotten,
    lines,
    registry,
    published: replicas.published,
    hear: replicas.hear,
    tell(...events) {
      for (const event of events) tell(event);
    },
    lose(...outages) {
      lost = outages;
    },
    async settle() {
      time.advance(5);
      // The status of objects is planned when the changes have been taken in.
      await awaitUntil(() => time.waiting > 0, { what: 'the changes to be taken in', everyMs: 1 });
      time.advance(100);
    },
  };
}

/** Replicas whose reports the test makes up. */
function otherReplicas() {
  let published: LimiterReport | undefined;
  let others: readonly ReplicaReport[] | undefined;
  const listeners = new Set<() => void>();
  const reports: LimiterReports = {
    publish(report) {
      published = report;
    },
    others: () => others,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    start: () => undefined,
    close: async () => undefined,
  };
  return {
    reports,
    published: () => published,
    hear(told: readonly ReplicaReport[]) {
      others = told;
      for (const listener of listeners) listener();
    },
  };
}
