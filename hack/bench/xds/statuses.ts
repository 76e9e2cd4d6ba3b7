import { setTimeout as delay } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { monotonicMs, readProcessUsage } from '../processes.ts';
import { formatCount, type Table } from '../report.ts';
import { formatTimes } from './edits.ts';
import { Followers } from './followers.ts';
import { createLimits, type KubeObjects } from './objects.ts';
import { readMetric, startXds } from './services.ts';

export interface StatusSizes {
  readonly objects: number;
  readonly edits: number;
  /** Limiters that join during the edits; each leaves a few edits later. */
  readonly joins: number;
}

/** Time after a join in which status writes are counted. */
const joinMs = 5000;
const readyTimeoutMs = 300_000;

/**
 * Edits objects while limiters join and leave, and waits for the condition Ready of each edit. Some
 * limiters stay all the time.
 */
export async function statusesTable(
  kube: KubeObjects,
  { objects, edits, joins }: StatusSizes,
  nodeFlags: readonly string[],
): Promise<Table> {
  await using cleanup = new AsyncDisposableStack();
  const limits = createLimits();
  await kube.fill(objects, limits.initial);
  const xds = await startXds(kube.settings, { nodeFlags });
  cleanup.defer(xds.stop);
  const join = async (): Promise<Followers> => {
    const followers = new Followers();
    const settled = followers.nextSettled();
    followers.follow(xds.address, 1);
    await settled;
    return followers;
  };
  const first = await join();
  cleanup.defer(() => first.close());
  const startedAt = monotonicMs();
  const countWrites = () => readMetric(xds, 'tollgate_xds_status_writes_total');
  await awaitUntil(async () => (await kube.countReady()) === objects, {
    what: 'all objects to be ready',
    timeoutMs: readyTimeoutMs,
    everyMs: 1000,
  });
  const firstMs = monotonicMs() - startedAt;

  const writesBefore = await countWrites();
  const second = await join();
  cleanup.defer(() => second.close());
  const whileJoining = await kube.editUntilReady(0, limits.next());
  await delay(joinMs);
  const writesOfJoin = (await countWrites()) - writesBefore - 1;

  const cpuBefore = readProcessUsage(xds.pid).cpuMs;
  const writesBeforeEdits = await countWrites();
  const samples: number[] = [];
  const guests: Followers[] = [];
  for (let i = 0; i < edits; i++) {
    if (Math.floor((i * joins) / edits) !== Math.floor(((i - 1) * joins) / edits)) guests.push(await join());
    // A few are connected at any time.
    if (guests.length > 3) guests.shift()?.close();
    samples.push(await kube.editUntilReady(Math.floor((i * objects) / edits), limits.next()));
  }
  for (const guest of guests) guest.close();
  const writes = (await countWrites()) - writesBeforeEdits;
  const cpuMs = readProcessUsage(xds.pid).cpuMs - cpuBefore;
  return {
    title: 'Status of objects while limiters join and leave',
    head: [
      ...['objects', 'first statuses ms', 'writes of a join', 'edit then ms', 'joins and leaves', 'edits'],
      ...['p50 ms', 'p99 ms', 'max ms', 'writes', 'CPU ms/edit'],
    ],
    rows: [
      [
        ...[objects, firstMs].map(formatCount),
        String(writesOfJoin),
        formatCount(whileJoining),
        formatCount(joins),
        ...formatTimes(samples),
        String(writes),
        formatCount(cpuMs / edits),
      ],
    ],
    notes: [
      `writes of a join: statuses written in the ${joinMs / 1000} s after a second limiter joined, without that of one edit; edit then: its time until it was ready`,
      'p50 … max: from the 200 of the API server to an edit until its object has the condition Ready of this generation, read every 5 ms; writes: statuses written meanwhile',
    ],
  };
}
