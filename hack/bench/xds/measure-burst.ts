import { awaitUntil } from '@tollgate/testkit/await-until';
import { createLimits, objectName } from './bench-object.ts';
import { startFollowers } from './followers/start-followers.ts';
import { type KubeObjects, maxWritesInFlight } from './kube-objects.ts';
import { monotonicMs } from './monotonic-ms.ts';
import { startXds } from './services.ts';
import type { Sizes } from './sizes.ts';
import { undoAll } from './undo-all.ts';

/** What becomes of many edits at once. */
export interface BurstResult {
  readonly edits: number;
  readonly objects: number;
  readonly streams: number;
  /** From the first edit until the API server had answered the last. */
  readonly burstMs: number;
  /** Fewest and most responses that a stream received because of it. */
  readonly fewestPushes: number;
  readonly mostPushes: number;
  /** From the last answer of the API server until all streams had the last state. */
  readonly settledMs: number;
}

const settledTimeoutMs = 30_000;

/**
 * Edits some objects many times, as fast as the API server takes it.
 *
 * @throws Error when the last state of a stream is not that of the last edits.
 */
export async function measureBurst(
  kube: KubeObjects,
  { objects, burstEdits: edits, burstStreams: streams }: Sizes,
  nodeFlags: readonly string[],
): Promise<BurstResult> {
  const limits = createLimits();
  const undo: (() => unknown)[] = [];
  try {
    await kube.fill(objects, limits.initial);
    const xds = await startXds(kube.settings, nodeFlags);
    undo.push(xds.stop);
    const followers = await startFollowers();
    undo.push(followers.close);
    const settled = followers.nextSettled();
    followers.follow(xds.address, streams);
    await settled;
    const before = await followers.report();

    const wanted = new Map<string, number>();
    const startedAt = monotonicMs();
    const answeredAt = await makeEdits(kube, { objects, edits }, (index) => {
      const limit = limits.next();
      wanted.set(objectName(index), limit);
      return limit;
    });
    const after = await awaitUntil(
      async () => {
        const report = await followers.report();
        const wrong = [...wanted].filter(([domain, limit]) => report.userLimits[domain] !== limit);
        if (wrong.length > 0) throw new Error(`${wrong.length} objects are not as they were edited last`);
        if (!report.isSame) throw new Error('the streams do not hold the same set');
        return report;
      },
      { what: 'the last state on all streams', timeoutMs: settledTimeoutMs, everyMs: 50 },
    );
    return {
      edits,
      objects,
      streams,
      burstMs: answeredAt - startedAt,
      fewestPushes: after.fewestResponses - before.fewestResponses,
      mostPushes: after.mostResponses - before.mostResponses,
      settledMs: Math.max(0, after.lastResponseMs - answeredAt),
    };
  } finally {
    await undoAll(undo);
  }
}

/** Answers when the API server had taken the last edit. Each object has one writer, so that its edits keep their order. */
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
