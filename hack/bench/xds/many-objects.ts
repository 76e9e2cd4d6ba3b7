import { setTimeout as delay } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { RateLimitService, XdsServer } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import { monotonicMs, readProcessUsage } from '../processes.ts';
import { formatCount, formatMegabytes, type Table } from '../report.ts';
import { formatTimes } from './edits.ts';
import { createLimits, type ObjectSource, objectName, rulesPerObject } from './objects.ts';
import { type LimitProbe, openLimitProbe, readMetric, startXds, startXdsLimiter } from './services.ts';
import type { Sizes } from './xds.ts';

/** Time between two looks at the count of acknowledgements. */
const pollMs = 5;
const acknowledgedTimeoutMs = 120_000;
/** Idle time of the processes before they are measured. */
const restMs = 3000;

interface Bed {
  readonly source: ObjectSource;
  readonly xds: XdsServer;
  readonly limiters: readonly { readonly process: RateLimitService; readonly probe: LimitProbe }[];
}

/** Two limiters and services/xds, with as many objects of each source. */
export async function manyObjectsTable(
  sources: readonly ObjectSource[],
  sizes: Sizes,
  nodeFlags: readonly string[],
): Promise<Table> {
  const rows: string[][] = [];
  for (const source of sources) rows.push(await measure(source, sizes, nodeFlags));
  return {
    title: 'Many objects, two limiters',
    head: [
      ...['source', 'objects', 'served ms', 'both have it ms', 'xds RSS MB', 'peak MB', 'limiter RSS MB'],
      ...['peak MB', 'edits', 'p50 ms', 'p99 ms', 'max ms', 'xds CPU ms', 'limiter CPU ms'],
    ],
    rows,
    notes: [
      `each object has a domain of its own and ${rulesPerObject} rules; in the folder there are 100 in each file`,
      'served: from the start of services/xds until it is ready; both have it: until it has the acknowledgements of two limiters that started before it',
      'p50 … max: from the edit of one object (the 200 of the API server; the file in place) until services/xds has both acknowledgements',
      'CPU: user and system time for each edit, the calls of the benchmark included',
      'a file is read when it has not changed for 50 ms; with kube-apiserver the status of all objects is written meanwhile',
    ],
  };
}

async function measure(
  source: ObjectSource,
  { manyObjects: objects, manyObjectsEdits }: Sizes,
  nodeFlags: readonly string[],
): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const limits = createLimits();
  await source.fill(objects, limits.initial);
  const port = await freePort();
  // They are ready once they have rules, so they are awaited after services/xds has started.
  const starting = ['limiter-1', 'limiter-2'].map((id) =>
    startXdsLimiter(`127.0.0.1:${port}`, id, nodeFlags),
  );
  for (const one of starting) cleanup.defer(async () => (await one).stop());
  // Their start is not what is measured.
  await delay(restMs);
  const startedAt = monotonicMs();
  const xds = await startXds(source.settings, { nodeFlags, grpcPort: port });
  cleanup.defer(xds.stop);
  const servedMs = monotonicMs() - startedAt;
  await waitForAcks(xds, 2);
  const acknowledgedMs = monotonicMs() - startedAt;
  const limiters: Bed['limiters'][number][] = [];
  for (const process of await Promise.all(starting)) {
    const probe = openLimitProbe(process);
    cleanup.defer(probe.close);
    limiters.push({ process, probe });
  }
  await delay(restMs);
  const bed: Bed = { source, xds, limiters };
  const before = readUsage(bed);
  const samples: number[] = [];
  // Spread over the whole set.
  for (let i = 0; i < manyObjectsEdits; i++)
    samples.push(await editOnce(bed, Math.floor((i * objects) / manyObjectsEdits), limits.next()));
  const after = readUsage(bed);
  const usage = [after.xds, after.limiters.toSorted((a, b) => b.peakRssBytes - a.peakRssBytes)[0]];
  const limiterCpuMs = (at: typeof after) => at.limiters.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  return [
    ...[source.label, formatCount(objects), formatCount(servedMs), formatCount(acknowledgedMs)],
    ...usage.flatMap((one) => [one?.rssBytes ?? 0, one?.peakRssBytes ?? 0]).map(formatMegabytes),
    ...formatTimes(samples),
    formatCount((after.xds.cpuMs - before.xds.cpuMs) / manyObjectsEdits),
    formatCount((limiterCpuMs(after) - limiterCpuMs(before)) / manyObjectsEdits / limiters.length),
  ];
}

async function editOnce({ source, xds, limiters }: Bed, index: number, limit: number): Promise<number> {
  const acksBefore = await countAcks(xds);
  const doneAt = await source.edit(index, limit);
  await Promise.all(limiters.map(({ probe }) => probe.waitForLimit(objectName(index), limit)));
  await waitForAcks(xds, acksBefore + limiters.length);
  return monotonicMs() - doneAt;
}

function readUsage({ xds, limiters }: Bed) {
  return {
    xds: readProcessUsage(xds.pid),
    limiters: limiters.map(({ process }) => readProcessUsage(process.pid)),
  };
}

function countAcks(xds: XdsServer): Promise<number> {
  return readMetric(xds, 'tollgate_xds_acks_total');
}

async function waitForAcks(xds: XdsServer, acks: number): Promise<void> {
  await awaitUntil(async () => (await countAcks(xds)) >= acks, {
    what: `${acks} acknowledgements`,
    timeoutMs: acknowledgedTimeoutMs,
    everyMs: pollMs,
  });
}
