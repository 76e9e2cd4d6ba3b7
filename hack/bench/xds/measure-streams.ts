import { readProcessUsage } from '../process-usage.ts';
import { createLimits } from './bench-object.ts';
import { type EditTimes, editTimes } from './edit-times.ts';
import { startFollowers } from './followers/start-followers.ts';
import type { KubeObjects } from './kube-objects.ts';
import { monotonicMs } from './monotonic-ms.ts';
import { startXds } from './services.ts';
import type { Sizes } from './sizes.ts';
import { undoAll } from './undo-all.ts';

/** What many streams cost. */
export interface StreamsResult {
  readonly streams: number;
  readonly objects: number;
  /** From the first connection until all streams had all objects. */
  readonly settledMs: number;
  /** CPU time of services/xds meanwhile. */
  readonly settledCpuMs: number;
  /** From an edit until all streams had acknowledged. */
  readonly edits: EditTimes;
  /** CPU time of services/xds for each edit. */
  readonly editCpuMs: number;
  readonly rssBytes: number;
  readonly peakRssBytes: number;
}

/** Connects many ADS clients at once and edits objects. */
export async function measureStreams(
  kube: KubeObjects,
  { objects, streams, streamsEdits }: Sizes,
  nodeFlags: readonly string[],
): Promise<StreamsResult> {
  const limits = createLimits();
  const undo: (() => unknown)[] = [];
  try {
    await kube.fill(objects, limits.initial);
    const xds = await startXds(kube.settings, nodeFlags);
    undo.push(xds.stop);
    const followers = await startFollowers();
    undo.push(followers.close);
    const before = readProcessUsage(xds.pid);
    const startedAt = monotonicMs();
    const settled = followers.nextSettled();
    followers.follow(xds.address, streams);
    const settledMs = (await settled).atMs - startedAt;
    const connected = readProcessUsage(xds.pid);
    const samples: number[] = [];
    for (let i = 0; i < streamsEdits; i++) {
      const settled = followers.nextSettled();
      const doneAt = await kube.edit(i % objects, limits.next());
      samples.push((await settled).atMs - doneAt);
    }
    const after = readProcessUsage(xds.pid);
    return {
      streams,
      objects,
      settledMs,
      settledCpuMs: connected.cpuMs - before.cpuMs,
      edits: editTimes(samples),
      editCpuMs: (after.cpuMs - connected.cpuMs) / streamsEdits,
      rssBytes: after.rssBytes,
      peakRssBytes: after.peakRssBytes,
    };
  } finally {
    await undoAll(undo);
  }
}
