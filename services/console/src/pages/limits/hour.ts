import type { Html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { descriptorName } from './descriptor.ts';
import { askLimiters, type Schemas } from './replicas.ts';

/** Bound of the counter API, and of what limiters remember. */
const maxKeys = 1000;

/** A key of the last hour, with a number for each minute, the oldest first. */
export type HourKey = ReportedKey & { readonly missed: readonly number[] };

/** Limiters of former versions do not say what may be missing. */
type ReportedKey = Schemas['KeysOfHour']['keys'][number];

/** The keys of all replicas. */
export interface Hour {
  /** Beginning of the first minute. */
  readonly sinceMs: number;
  readonly minutes: number;
  /** False when replicas left out keys, since there were too many. */
  readonly isComplete: boolean;
  readonly keys: readonly HourKey[];
  readonly problems: readonly Html[];
}

/** The heaviest keys of the last hour, summed over all replicas. */
export async function readHour(
  visit: Visit,
  { limit = maxKeys, domain }: { readonly limit?: number; readonly domain?: string | undefined } = {},
): Promise<Hour> {
  const query = { limit, ...(domain !== undefined && { domain }) };
  const { values, problems } = await askLimiters(visit, (client) =>
    client.GET('/v1/keys', { params: { query } }),
  );
  return { ...sumReplicas(values, visit.nowMs), problems };
}

type Report = Schemas['KeysOfHour'];

/** Sums reports, whose first minutes may differ. */
export function sumReplicas(reports: readonly Report[], nowMs: number): Omit<Hour, 'problems'> {
  const starts = reports.map(({ since }) => toMinute(Date.parse(since)));
  const first = Math.min(toMinute(nowMs), ...starts);
  const ends = reports.flatMap(({ keys }, index) =>
    keys.map(({ hits }) => (starts[index] ?? first) + hits.length),
  );
  const minutes = Math.max(toMinute(nowMs) + 1, ...ends) - first;
  const sums = new Map<string, HourKey>();
  for (const [index, { keys }] of reports.entries()) {
    const offset = (starts[index] ?? first) - first;
    for (const key of keys) {
      const name = descriptorName(key);
      const known = sums.get(name);
      const add = (field: 'hits' | 'refused' | 'peakSecond' | 'missed') => {
        const sum = known?.[field].slice() ?? new Array<number>(minutes).fill(0);
        for (const [at, value] of (key[field] ?? []).entries())
          sum[offset + at] = (sum[offset + at] ?? 0) + value;
        return sum;
      };
      sums.set(name, {
        ...{ ...key, hits: add('hits'), refused: add('refused') },
        ...{ peakSecond: add('peakSecond'), missed: add('missed') },
      });
    }
  }
  const isComplete = reports.every(({ complete }) => complete);
  return { sinceMs: first * 60_000, minutes, isComplete, keys: [...sums.values()] };
}

function toMinute(ms: number): number {
  return Math.floor(ms / 60_000);
}
