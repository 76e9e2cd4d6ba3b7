import { createLimits, objectName } from './bench-object.ts';
import { type EditTimes, editTimes } from './edit-times.ts';
import type { KubeObjects } from './kube-objects.ts';
import { openLimitProbe } from './limit-probe.ts';
import { startLimiter, startXds } from './services.ts';
import type { Sizes } from './sizes.ts';
import { undoAll } from './undo-all.ts';

/** From an edit until a limiter enforces it. */
export interface EditsResult {
  /** How the edit was made. */
  readonly way: string;
  readonly objects: number;
  readonly times: EditTimes;
}

/** Edits one object after the other, with one limiter connected, over the API and with kubectl. */
export async function measureEdits(
  kube: KubeObjects,
  sizes: Sizes,
  nodeFlags: readonly string[],
): Promise<EditsResult[]> {
  const { objects } = sizes;
  const limits = createLimits();
  const undo: (() => unknown)[] = [];
  try {
    await kube.fill(objects, limits.initial);
    const xds = await startXds(kube.settings, nodeFlags);
    undo.push(xds.stop);
    const limiter = await startLimiter(xds.address, 'limiter-1', nodeFlags);
    undo.push(limiter.stop);
    const probe = await openLimitProbe(limiter);
    undo.push(probe.close);

    const run = async (count: number, edit: (index: number, limit: number) => Promise<number>) => {
      const samples: number[] = [];
      for (let i = 0; i < count; i++) {
        const index = i % objects;
        const limit = limits.next();
        const doneAt = await edit(index, limit);
        samples.push((await probe.untilEnforced(objectName(index), limit)) - doneAt);
      }
      return editTimes(samples);
    };
    // The first edits compile code that no later one has to.
    await run(sizes.warmUpEdits, kube.edit);
    return [
      { way: 'server-side apply, from the 200', objects, times: await run(sizes.edits, kube.edit) },
      {
        way: 'kubectl apply, from its exit',
        objects,
        times: await run(sizes.kubectlEdits, kube.editWithKubectl),
      },
    ];
  } finally {
    await undoAll(undo);
  }
}
