import { execFileSync } from 'node:child_process';
import { kubeAvailability } from '@tollgate/testkit/kube-binaries';
import type { BenchOptions, Report } from '../report.ts';
import { burstTable, editsTable, streamsTable } from './edits.ts';
import { manyObjectsTable } from './many-objects.ts';
import { createFolderObjects, startKubeObjects } from './objects.ts';
import { type StatusSizes, statusesTable } from './statuses.ts';

/** How much is measured. */
export interface Sizes {
  /** Objects where their number is not what is measured. */
  readonly objects: number;
  readonly warmUpEdits: number;
  readonly edits: number;
  readonly kubectlEdits: number;
  readonly manyObjects: number;
  readonly manyObjectsEdits: number;
  readonly streams: number;
  readonly streamsEdits: number;
  readonly burstEdits: number;
  readonly burstStreams: number;
  readonly statuses: StatusSizes;
}

const fullSizes: Sizes = {
  objects: 100,
  warmUpEdits: 20,
  edits: 200,
  kubectlEdits: 20,
  manyObjects: 10_000,
  manyObjectsEdits: 20,
  streams: 500,
  streamsEdits: 10,
  burstEdits: 1000,
  burstStreams: 10,
  statuses: { objects: 10_000, edits: 200, joins: 20 },
};

const quickSizes: Sizes = {
  objects: 100,
  warmUpEdits: 5,
  edits: 20,
  kubectlEdits: 3,
  manyObjects: 1000,
  manyObjectsEdits: 5,
  streams: 50,
  streamsEdits: 5,
  burstEdits: 200,
  burstStreams: 3,
  statuses: { objects: 1000, edits: 20, joins: 5 },
};

/** services/xds with real limiters and a real kube-apiserver. */
export async function benchXds({ quick, nodeFlags, progress }: BenchOptions): Promise<Report> {
  await using cleanup = new AsyncDisposableStack();
  const sizes = quick ? quickSizes : fullSizes;
  const kube = await startKubeObjects();
  cleanup.defer(kube.close);
  const folder = createFolderObjects();
  cleanup.defer(folder.close);
  progress('edits');
  const edits = await editsTable(kube, sizes, nodeFlags);
  progress('streams');
  const streams = await streamsTable(kube, sizes, nodeFlags);
  progress('many edits at once');
  const burst = await burstTable(kube, sizes, nodeFlags);
  progress('many objects');
  // Last, because its objects stay in the API server.
  const manyObjects = await manyObjectsTable([folder, kube], sizes, nodeFlags);
  progress('statuses');
  const statuses = await statusesTable(kube, sizes.statuses, nodeFlags);
  return {
    page: 'benchmarks-xds.md',
    title: 'Benchmarks of the xDS server',
    intro:
      'Written by `make bench-xds ARGS=--write` (hack/bench); do not edit by hand. All settings are the defaults (limiters receive an edit 5 ms after its\nfirst event), except for the backoff of limiters that connect.',
    sharedBy: 'etcd, kube-apiserver, services/xds, the limiters and the clients',
    programs: kubeVersions(),
    tables: [edits, manyObjects, statuses, streams, burst],
  };
}

export function kubeVersions(): string[] {
  const available = kubeAvailability();
  if (!available.ok) return [];
  const { etcd, kubeApiserver } = available.binaries;
  return Object.entries({ 'kube-apiserver': kubeApiserver, etcd }).map(([name, binary]) => {
    const text = execFileSync(binary, ['--version'], { encoding: 'utf8' });
    return `${name} ${/\d+\.\d+\.\d+/.exec(text)?.[0] ?? 'unknown'}`;
  });
}
