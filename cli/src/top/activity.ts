import type { Entry } from '../descriptor.ts';

interface Hits {
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly hits: number;
}

interface Refusal extends Hits {
  /** RFC 3339. */
  readonly time: string;
  readonly requestsPerUnit: number;
  readonly unit: string;
}

/** Hits of the last one to two minutes, and the last refusals, newest first, of a replica. */
export interface ReplicaActivity {
  readonly keys: readonly Hits[];
  readonly refusals: readonly Refusal[];
}

/** A key with the activity of all replicas. */
export interface KeyActivity extends Hits {
  /** Refusals among the last ones that replicas remember. */
  readonly refused: number;
  /** Absent without a refusal. */
  readonly lastRefusal?: string;
  /** The limit that was exceeded. */
  readonly limit?: string;
}

/** Sums the activity of all replicas. Sorts by refusals, then by hits. */
export function mergeActivity(replicas: readonly ReplicaActivity[]): readonly KeyActivity[] {
  const byKey = new Map<string, KeyActivity>();
  const change = (key: Hits, update: (before: KeyActivity) => KeyActivity) => {
    const name = JSON.stringify([key.domain, key.entries.map((entry) => [entry.key, entry.value])]);
    const { domain, entries } = key;
    byKey.set(name, update(byKey.get(name) ?? { domain, entries, hits: 0, refused: 0 }));
  };
  for (const key of replicas.flatMap(({ keys }) => keys))
    change(key, (before) => ({ ...before, hits: before.hits + key.hits }));
  for (const refusal of replicas.flatMap(({ refusals }) => refusals))
    change(refusal, (before) => addRefusal(before, refusal));
  return [...byKey.values()].sort((a, b) => b.refused - a.refused || b.hits - a.hits);
}

function addRefusal(before: KeyActivity, { time, requestsPerUnit, unit }: Refusal): KeyActivity {
  const refused = before.refused + 1;
  const { lastRefusal = '' } = before;
  if (time <= lastRefusal) return { ...before, refused };
  return { ...before, refused, lastRefusal: time, limit: `${requestsPerUnit} per ${unit}` };
}
