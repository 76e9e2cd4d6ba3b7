import { awaitUntil } from '@tollgate/testkit/await-until';
import { monotonicMs, readProcessUsage } from '../processes.ts';
import { formatCount, formatMegabytes, percentile, type Table } from '../report.ts';
import { Followers } from './followers.ts';
import { createLimits, type KubeObjects, maxWritesInFlight, objectName } from './objects.ts';
import { openLimitProbe, probeEveryMs, startXds, startXdsLimiter } from './services.ts';
import type { Sizes } from './xds.ts';

const settledTimeoutMs = 30_000;

/** Edits one object after the other, with one limiter connected, over the API and with kubectl. */
export async function editsTable(
  kube: KubeObjects,
  sizes: Sizes,
  nodeFlags: readonly string[],
): Promise<Table> {
  await using cleanup = new AsyncDisposableStack();
  const { objects } = sizes;
  const limits = createLimits();
  await kube.fill(objects, limits.initial);
  const xds = await startXds(kube.settings, { nodeFlags });
  cleanup.defer(xds.stop);
  const limiter = await startXdsLimiter(xds.address, 'limiter-1', nodeFlags);
  cleanup.defer(limiter.stop);
  const probe = openLimitProbe(limiter);
  cleanup.defer(probe.close);

  const run = async (count: number, edit: (index: number, limit: number) => Promise<number>) => {
    const samples: number[] = [];
    for (let i = 0; i < count; i++) {
      const limit = limits.next();
      const doneAt = await edit(i % objects, limit);
      samples.push((await probe.waitForLimit(objectName(i % objects), limit)) - doneAt);
    }
    return samples;
  };
  // The first edits compile code that later ones use.
  await run(sizes.warmUpEdits, kube.edit);
  const row = (name: string, samples: readonly number[]) => [
    name,
    formatCount(objects),
    ...formatTimes(samples),
  ];
  return {
    title: 'From an edit until a limiter enforces it',
    head: ['edit', 'objects', 'edits', 'p50 ms', 'p99 ms', 'max ms'],
    rows: [
      row('server-side apply, from the 200', await run(sizes.edits, kube.edit)),
      row('kubectl apply, from its exit', await run(sizes.kubectlEdits, kube.editWithKubectl)),
    ],
    notes: [
      'server-side apply: a PATCH with `application/apply-patch+yaml` on a kept TLS connection; the time starts with the 200 of the API server',
      `enforced: a decision over gRPC has the new limit; the limiter is called again ${probeEveryMs} ms after each response`,
    ],
  };
}

/** Starts services/xds with objects and connects clients, which have all objects then. */
async function followObjects(
  kube: KubeObjects,
  { objects, streams }: { readonly objects: number; readonly streams: number },
  nodeFlags: readonly string[],
) {
  await using cleanup = new AsyncDisposableStack();
  const limits = createLimits();
  await kube.fill(objects, limits.initial);
  const xds = await startXds(kube.settings, { nodeFlags });
  cleanup.defer(xds.stop);
  const followers = new Followers();
  cleanup.defer(() => followers.close());
  const startCpuMs = readProcessUsage(xds.pid).cpuMs;
  const startedAt = monotonicMs();
  const settled = followers.nextSettled();
  followers.follow(xds.address, streams);
  const settledMs = (await settled).atMs - startedAt;
  const stack = cleanup.move();
  const dispose = () => stack.disposeAsync();
  return { limits, xds, followers, startCpuMs, settledMs, [Symbol.asyncDispose]: dispose };
}

/** Connects many ADS clients at once and edits objects. */
export async function streamsTable(
  kube: KubeObjects,
  { objects, streams, streamsEdits }: Sizes,
  nodeFlags: readonly string[],
): Promise<Table> {
  await using bed = await followObjects(kube, { objects, streams }, nodeFlags);
  const { limits, xds, followers } = bed;
  const connected = readProcessUsage(xds.pid);
  const samples: number[] = [];
  for (let i = 0; i < streamsEdits; i++) {
    const settled = followers.nextSettled();
    const doneAt = await kube.edit(i % objects, limits.next());
    samples.push((await settled).atMs - doneAt);
  }
  const after = readProcessUsage(xds.pid);
  return {
    title: 'Many streams',
    head: [
      ...['streams', 'objects', 'all have it ms', 'CPU ms', 'edits', 'p50 ms', 'p99 ms', 'max ms'],
      ...['CPU ms/edit', 'RSS MB', 'peak MB'],
    ],
    rows: [
      [
        ...[streams, objects, bed.settledMs, connected.cpuMs - bed.startCpuMs].map(formatCount),
        ...formatTimes(samples),
        formatCount((after.cpuMs - connected.cpuMs) / streamsEdits),
        ...[after.rssBytes, after.peakRssBytes].map(formatMegabytes),
      ],
    ],
    notes: [
      'each stream is state of the world on a connection of its own; all clients are in the process of the benchmark, which takes its share of the cores',
      'all have it: from the first connection until the last client has written its ACK; p50 … max: from the 200 of the API server until then',
      'CPU: user and system time of services/xds',
    ],
  };
}

/**
 * Edits some objects many times, as fast as the API server accepts it.
 *
 * @throws Error when the last state of a stream is not that of the last edits.
 */
export async function burstTable(
  kube: KubeObjects,
  { objects, burstEdits: edits, burstStreams: streams }: Sizes,
  nodeFlags: readonly string[],
): Promise<Table> {
  await using bed = await followObjects(kube, { objects, streams }, nodeFlags);
  const { limits, followers } = bed;
  const before = followers.report();
  const wanted = new Map<string, number>();
  const startedAt = monotonicMs();
  const answeredAt = await makeEdits(kube, { objects, edits }, (index) => {
    const limit = limits.next();
    wanted.set(objectName(index), limit);
    return limit;
  });
  const after = await awaitUntil(
    async () => {
      const report = followers.report();
      const wrong = [...wanted].filter(([domain, limit]) => report.userLimits[domain] !== limit);
      if (wrong.length > 0) throw new Error(`${wrong.length} objects are not as they were edited last`);
      if (!report.isSame) throw new Error('the streams do not hold the same set');
      return report;
    },
    { what: 'the last state on all streams', timeoutMs: settledTimeoutMs, everyMs: 50 },
  );
  return {
    title: 'Many edits at once',
    head: ['edits', 'objects', 'streams', 'burst ms', 'pushes, fewest', 'most', 'settled ms'],
    rows: [
      [
        ...[edits, objects, streams, answeredAt - startedAt].map(formatCount),
        ...[after.fewestResponses - before.fewestResponses, after.mostResponses - before.mostResponses].map(
          formatCount,
        ),
        Math.max(0, after.lastResponseMs - answeredAt).toFixed(1),
      ],
    ],
    notes: [
      `burst: ${maxWritesInFlight} server-side applies at a time, until the last response of the API server; pushes: responses that a stream received because of it`,
      'settled: from then until the last response on a stream; the last state of every stream is compared with the edits',
    ],
  };
}

/**
 * Returns when the API server had answered the last edit. Each object has one writer, so that its
 * edits keep their order.
 */
async function makeEdits(
  kube: KubeObjects,
  { objects, edits }: { readonly objects: number; readonly edits: number },
  nextLimit: (index: number) => number,
): Promise<number> {
  const write = async (writer: number): Promise<number> => {
    let answeredAt = 0;
    for (let edit = 0; edit < edits; edit++) {
      const index = edit % objects;
      if (index % maxWritesInFlight === writer) answeredAt = await kube.edit(index, nextLimit(index));
    }
    return answeredAt;
  };
  return Math.max(...(await Promise.all(Array.from({ length: maxWritesInFlight }, (_, i) => write(i)))));
}

/** Their number, p50, p99 and maximum. */
export function formatTimes(samplesMs: readonly number[]): string[] {
  const times = [50, 99, 100].map((percent) => percentile(samplesMs, percent).toFixed(1));
  return [formatCount(samplesMs.length), ...times];
}
