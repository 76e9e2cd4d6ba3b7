import { createFolderObjects } from './folder-objects.ts';
import { type KubeObjects, startKubeObjects } from './kube-objects.ts';
import { type BurstResult, measureBurst } from './measure-burst.ts';
import { type EditsResult, measureEdits } from './measure-edits.ts';
import { type ManyObjectsResult, measureManyObjects } from './measure-many-objects.ts';
import { measureStreams, type StreamsResult } from './measure-streams.ts';
import type { Part, XdsBenchOptions } from './options.ts';
import { fullSizes, quickSizes, type Sizes } from './sizes.ts';
import { undoAll } from './undo-all.ts';

/** Everything that was measured. */
export interface XdsBenchReport {
  readonly edits: EditsResult[];
  readonly manyObjects: ManyObjectsResult[];
  readonly streams: StreamsResult[];
  readonly bursts: BurstResult[];
}

type Measure = (kube: () => Promise<KubeObjects>, report: XdsBenchReport) => Promise<void>;

/** Runs the parts one after the other. `progress` takes what happens meanwhile, without a line end. */
export async function runXdsBench(
  { parts, quick, nodeFlags }: XdsBenchOptions,
  progress: (text: string) => void,
): Promise<XdsBenchReport> {
  const report: XdsBenchReport = { edits: [], manyObjects: [], streams: [], bursts: [] };
  const measures = measuresOf(quick ? quickSizes : fullSizes, nodeFlags);
  const undo: (() => unknown)[] = [];
  let started: KubeObjects | undefined;
  const kube = async (): Promise<KubeObjects> => {
    if (started === undefined) {
      started = await startKubeObjects();
      undo.push(started.close);
    }
    return started;
  };
  try {
    for (const part of parts) {
      progress(`bench: ${part} ...`);
      const startedAt = performance.now();
      await measures[part](kube, report);
      progress(` ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
    }
  } finally {
    await undoAll(undo);
  }
  return report;
}

function measuresOf(sizes: Sizes, nodeFlags: readonly string[]): Readonly<Record<Part, Measure>> {
  return {
    async edits(kube, { edits }) {
      edits.push(...(await measureEdits(await kube(), sizes, nodeFlags)));
    },
    async streams(kube, { streams }) {
      streams.push(await measureStreams(await kube(), sizes, nodeFlags));
    },
    async burst(kube, { bursts }) {
      bursts.push(await measureBurst(await kube(), sizes, nodeFlags));
    },
    async folder(_kube, { manyObjects }) {
      const folder = createFolderObjects();
      try {
        manyObjects.push(await measureManyObjects(folder, sizes, nodeFlags));
      } finally {
        await folder.close();
      }
    },
    // The last one: its objects stay.
    async kubernetes(kube, { manyObjects }) {
      manyObjects.push(await measureManyObjects(await kube(), sizes, nodeFlags));
    },
  };
}
