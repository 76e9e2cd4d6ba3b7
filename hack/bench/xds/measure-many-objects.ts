import { setTimeout as delay } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { freePort } from '@tollgate/testkit/free-port';
import { readProcessUsage } from '../process-usage.ts';
import { createLimits, objectName } from './bench-object.ts';
import { type EditTimes, editTimes } from './edit-times.ts';
import { type LimitProbe, openLimitProbe } from './limit-probe.ts';
import { lastLogTime } from './log-time.ts';
import { monotonicMs } from './monotonic-ms.ts';
import type { ObjectSource } from './object-source.ts';
import { type LimiterService, startLimiter, startXdsOn, type XdsService } from './services.ts';
import type { Sizes } from './sizes.ts';
import { undoAll } from './undo-all.ts';

/** What many objects cost, with two limiters. */
export interface ManyObjectsResult {
  readonly source: string;
  readonly objects: number;
  /** From the start of services/xds until it was ready. */
  readonly firstSnapshotMs: number;
  /** From its start until both limiters, which were there before it, had acknowledged. */
  readonly acknowledgedMs: number;
  readonly xdsRssBytes: number;
  readonly xdsPeakRssBytes: number;
  /** Of the larger limiter. */
  readonly limiterRssBytes: number;
  readonly limiterPeakRssBytes: number;
  /** From an edit until services/xds had both acknowledgements. */
  readonly edits: EditTimes;
  /** Medians of the parts of an edit. */
  readonly parts: EditParts;
  /** CPU time for each edit; of a limiter the mean of both. */
  readonly xdsCpuMs: number;
  readonly limiterCpuMs: number;
}

/** Where the time of an edit goes. */
interface EditParts {
  /** From the edit until the new set was in force in services/xds. */
  readonly servedMs: number;
  /** From then until the slower limiter had it in force. */
  readonly acceptedMs: number;
}

/** How often services/xds is asked for its count of acknowledgements. */
const pollMs = 5;
const acknowledgedTimeoutMs = 120_000;
/** How long the processes are left alone after their start before they are measured. */
const restMs = 3000;

interface Bed {
  readonly source: ObjectSource;
  readonly xds: XdsService;
  readonly limiters: readonly { readonly service: LimiterService; readonly probe: LimitProbe }[];
}

/** Starts two limiters and services/xds on a full source, waits until all is in force, and edits single objects. */
export async function measureManyObjects(
  source: ObjectSource,
  { manyObjects: objects, manyObjectsEdits }: Sizes,
  nodeFlags: readonly string[],
): Promise<ManyObjectsResult> {
  const limits = createLimits();
  await source.fill(objects, limits.initial);
  const undo: (() => unknown)[] = [];
  try {
    const port = await freePort();
    // They are ready once they have rules, so they are waited for after services/xds was started.
    const starting = ['limiter-1', 'limiter-2'].map((id) => startLimiter(`127.0.0.1:${port}`, id, nodeFlags));
    for (const one of starting) undo.push(async () => (await one).stop());
    // Node takes half a second to start them, which is not what is measured.
    await delay(restMs);
    const startedAt = monotonicMs();
    const xds = await startXdsOn(port, source.settings, nodeFlags);
    undo.push(xds.stop);
    await untilAcknowledged(xds, 2);
    const acknowledgedMs = monotonicMs() - startedAt;
    const limiters: { service: LimiterService; probe: LimitProbe }[] = [];
    for (const service of await Promise.all(starting)) {
      const probe = await openLimitProbe(service);
      undo.push(probe.close);
      limiters.push({ service, probe });
    }
    await delay(restMs);
    const bed: Bed = { source, xds, limiters };
    const cpuBefore = cpuOf(bed);
    const edits: Awaited<ReturnType<typeof editOnce>>[] = [];
    for (let i = 0; i < manyObjectsEdits; i++) {
      // All over the set.
      edits.push(await editOnce(bed, Math.floor((i * objects) / manyObjectsEdits), limits.next()));
    }
    const cpuAfter = cpuOf(bed);
    const usage = limiters.map(({ service }) => readProcessUsage(service.pid));
    const xdsUsage = readProcessUsage(xds.pid);
    return {
      source: source.label,
      objects,
      firstSnapshotMs: xds.startMs,
      acknowledgedMs,
      xdsRssBytes: xdsUsage.rssBytes,
      xdsPeakRssBytes: xdsUsage.peakRssBytes,
      limiterRssBytes: Math.max(...usage.map(({ rssBytes }) => rssBytes)),
      limiterPeakRssBytes: Math.max(...usage.map(({ peakRssBytes }) => peakRssBytes)),
      edits: editTimes(edits.map(({ acknowledgedMs }) => acknowledgedMs)),
      parts: {
        servedMs: editTimes(edits.map(({ servedMs }) => servedMs)).p50Ms,
        acceptedMs: editTimes(edits.map(({ acceptedMs }) => acceptedMs)).p50Ms,
      },
      xdsCpuMs: (cpuAfter.xdsMs - cpuBefore.xdsMs) / manyObjectsEdits,
      limiterCpuMs: (cpuAfter.limitersMs - cpuBefore.limitersMs) / manyObjectsEdits / limiters.length,
    };
  } finally {
    await undoAll(undo);
  }
}

async function editOnce({ source, xds, limiters }: Bed, index: number, limit: number) {
  const acksBefore = await acksOf(xds);
  const served = watchLog(xds, 'rules served');
  const accepted = limiters.map(({ service }) => watchLog(service, 'configuration accepted'));
  const doneAt = await source.edit(index, limit);
  const doneWallMs = Date.now();
  await Promise.all(limiters.map(({ probe }) => probe.untilEnforced(objectName(index), limit)));
  await untilAcknowledged(xds, acksBefore + limiters.length);
  const acknowledgedMs = monotonicMs() - doneAt;
  const servedAt = await served();
  const acceptedAt = await Promise.all(accepted.map((next) => next()));
  return {
    acknowledgedMs,
    servedMs: servedAt - doneWallMs,
    acceptedMs: Math.max(...acceptedAt) - servedAt,
  };
}

function cpuOf({ xds, limiters }: Bed): { readonly xdsMs: number; readonly limitersMs: number } {
  const limitersMs = limiters.reduce((sum, { service }) => sum + readProcessUsage(service.pid).cpuMs, 0);
  return { xdsMs: readProcessUsage(xds.pid).cpuMs, limitersMs };
}

const acksOf = (xds: XdsService): Promise<number> => xds.metric('tollgate_xds_acks_total');

async function untilAcknowledged(xds: XdsService, acks: number): Promise<void> {
  await awaitUntil(async () => (await acksOf(xds)) >= acks, {
    what: `${acks} acknowledgements`,
    timeoutMs: acknowledgedTimeoutMs,
    everyMs: pollMs,
  });
}

/** Answers a function that waits until a service logs that again, and says when it did; a line may take a moment to arrive. */
function watchLog({ log }: { log(): string }, message: string): () => Promise<number> {
  const before = lastLogTime(log(), message);
  const next = (): number | undefined => {
    const time = lastLogTime(log(), message);
    return time === before ? undefined : time;
  };
  return async () => (await awaitUntil(next, { what: `the log line '${message}'` })) ?? 0;
}
