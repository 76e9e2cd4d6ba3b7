import type { Column } from '../report/format-table.ts';
import { rulesPerObject } from './bench-object.ts';
import type { EditTimes } from './edit-times.ts';
import { probeEveryMs } from './limit-probe.ts';
import type { BurstResult } from './measure-burst.ts';
import type { EditsResult } from './measure-edits.ts';
import type { ManyObjectsResult } from './measure-many-objects.ts';
import type { StreamsResult } from './measure-streams.ts';
import type { XdsBenchReport } from './run-xds-bench.ts';

/** A table with its title and what its heads mean. */
export interface XdsTable {
  readonly title: string;
  readonly table: string;
  readonly notes: readonly string[];
}

/** The tables of what was measured, each laid out by `layOut`. */
export function xdsTables(
  { edits, manyObjects, streams, bursts }: XdsBenchReport,
  layOut: <Row>(columns: readonly Column<Row>[], rows: readonly Row[]) => string,
): XdsTable[] {
  const tables: XdsTable[] = [];
  if (edits.length > 0)
    tables.push({
      title: 'From an edit until a limiter enforces it',
      table: layOut(editsColumns, edits),
      notes: editsNotes,
    });
  if (manyObjects.length > 0)
    tables.push({
      title: 'Many objects, two limiters',
      table: layOut(manyObjectsColumns, manyObjects),
      notes: manyObjectsNotes,
    });
  if (streams.length > 0)
    tables.push({ title: 'Many streams', table: layOut(streamsColumns, streams), notes: streamsNotes });
  if (bursts.length > 0)
    tables.push({ title: 'Many edits at once', table: layOut(burstColumns, bursts), notes: burstNotes });
  return tables;
}

const editsColumns: readonly Column<EditsResult>[] = [
  { head: 'edit', align: 'left', cell: ({ way }) => way },
  { head: 'objects', cell: ({ objects }) => count(objects) },
  ...timesColumns<EditsResult>(({ times }) => times),
];

const editsNotes = [
  'server-side apply: a PATCH with `application/apply-patch+yaml` by node:https on a TLS connection that is kept; the time runs from the API server’s 200',
  'kubectl apply: the real program; the time runs from its exit',
  `enforced: a decision over gRPC shows the new limit; the limiter is asked again ${probeEveryMs} ms after each answer`,
];

const manyObjectsColumns: readonly Column<ManyObjectsResult>[] = [
  { head: 'source', align: 'left', cell: ({ source }) => source },
  { head: 'objects', cell: ({ objects }) => count(objects) },
  { head: 'served ms', cell: ({ firstSnapshotMs }) => count(firstSnapshotMs) },
  { head: 'both have it ms', cell: ({ acknowledgedMs }) => count(acknowledgedMs) },
  { head: 'xds RSS MB', cell: ({ xdsRssBytes }) => megabytes(xdsRssBytes) },
  { head: 'peak MB', cell: ({ xdsPeakRssBytes }) => megabytes(xdsPeakRssBytes) },
  { head: 'limiter RSS MB', cell: ({ limiterRssBytes }) => megabytes(limiterRssBytes) },
  { head: 'peak MB', cell: ({ limiterPeakRssBytes }) => megabytes(limiterPeakRssBytes) },
  { head: 'edits', cell: ({ edits }) => count(edits.edits) },
  { head: 'p50 ms', cell: ({ edits }) => edits.p50Ms.toFixed(0) },
  { head: 'max ms', cell: ({ edits }) => edits.maxMs.toFixed(0) },
  { head: 'of it xds ms', cell: ({ parts }) => parts.servedMs.toFixed(0) },
  { head: 'limiter ms', cell: ({ parts }) => parts.acceptedMs.toFixed(0) },
  { head: 'xds CPU ms', cell: ({ xdsCpuMs }) => xdsCpuMs.toFixed(0) },
  { head: 'limiter CPU ms', cell: ({ limiterCpuMs }) => limiterCpuMs.toFixed(0) },
];

const manyObjectsNotes = [
  `each object has a domain of its own and ${rulesPerObject} rules; in the folder there are 100 in each file`,
  'served: from the start of services/xds until it is ready; both have it: until it has the acknowledgements of two limiters that were there before it',
  'p50, max: from the edit of one object (the API server’s 200; the file in its place) until services/xds has both acknowledgements, asked for every 5 ms',
  'of it: medians, from the edit until the new set is in force in services/xds, and from there until it is in force in the slower limiter; the rest is the way of the ACK and the polling',
  'CPU: user and system time for each edit, the questions of the bench included; other work on the cores lengthens it less than it does the waiting',
  'a file is taken when it has been still for 50 ms; with kube-apiserver the status of all objects is being written meanwhile',
];

const streamsColumns: readonly Column<StreamsResult>[] = [
  { head: 'streams', cell: ({ streams }) => count(streams) },
  { head: 'objects', cell: ({ objects }) => count(objects) },
  { head: 'all have it ms', cell: ({ settledMs }) => count(settledMs) },
  { head: 'CPU ms', cell: ({ settledCpuMs }) => count(settledCpuMs) },
  ...timesColumns<StreamsResult>(({ edits }) => edits),
  { head: 'CPU ms/edit', cell: ({ editCpuMs }) => editCpuMs.toFixed(0) },
  { head: 'RSS MB', cell: ({ rssBytes }) => megabytes(rssBytes) },
  { head: 'peak MB', cell: ({ peakRssBytes }) => megabytes(peakRssBytes) },
];

const streamsNotes = [
  'each stream is state of the world on a connection of its own; all clients are one process, which takes its share of the cores',
  'all have it: from the first connection until the last client has written its ACK; p50 … max: from the API server’s 200 to an edit until then',
  'CPU: user and system time of services/xds',
];

const burstColumns: readonly Column<BurstResult>[] = [
  { head: 'edits', cell: ({ edits }) => count(edits) },
  { head: 'objects', cell: ({ objects }) => count(objects) },
  { head: 'streams', cell: ({ streams }) => count(streams) },
  { head: 'burst ms', cell: ({ burstMs }) => count(burstMs) },
  { head: 'pushes, fewest', cell: ({ fewestPushes }) => count(fewestPushes) },
  { head: 'most', cell: ({ mostPushes }) => count(mostPushes) },
  { head: 'settled ms', cell: ({ settledMs }) => settledMs.toFixed(1) },
];

const burstNotes = [
  'burst: 16 server-side applies at a time, until the API server has answered the last; pushes: responses that a stream received because of it',
  'settled: from that last answer until the last response came; the last state of every stream was compared with the edits, and is exact',
];

function timesColumns<Row>(timesOf: (row: Row) => EditTimes): Column<Row>[] {
  return [
    { head: 'edits', cell: (row) => count(timesOf(row).edits) },
    { head: 'p50 ms', cell: (row) => timesOf(row).p50Ms.toFixed(1) },
    { head: 'p99 ms', cell: (row) => timesOf(row).p99Ms.toFixed(1) },
    { head: 'max ms', cell: (row) => timesOf(row).maxMs.toFixed(1) },
  ];
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
