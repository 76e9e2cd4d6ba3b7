import type { Html } from '@tollgate/kit/html';
import type { Answers } from '../../http/problems.ts';
import type { Visit } from '../../http/visit.ts';
import { type DomainDescriptor, descriptorName, isCut } from './descriptor.ts';
import { readHour } from './hour.ts';
import { askLimiters, fullest, mergeProblems, type Schemas } from './replicas.ts';

type Refusal = Schemas['RefusalList']['refusals'][number];

/** Keys of one page: each is read from the store for every update. */
const maxKeys = 40;

/** Keys whose last hour a page reads. */
const maxHourKeys = 100;

/** Bound of the counter API. */
const maxRefusals = 1000;

/** A key whose first known refusal is not older counts as newly limited. */
const newlyMs = 5 * 60 * 1000;

/** How full the limit of a key is. */
export type KeyState = 'over' | 'near' | 'free';

/** A key with its hits, its refusals and its counter. */
export interface KeyRow extends DomainDescriptor {
  /** Hits per second. Undefined for a key that is not among the heaviest. */
  readonly rate: number | undefined;
  /** The refusals that limiters remember. */
  readonly refused: number;
  readonly lastRefusedAt: string | undefined;
  readonly isNew: boolean;
  /** Undefined when no limit applies any more. */
  readonly counter: Schemas['Counter'] | undefined;
  readonly state: KeyState;
  /** Hits of each minute of the last hour. Undefined for a key that is not among the heaviest. */
  readonly hitsByMinute: readonly number[] | undefined;
}

/** The refusals of all replicas, newest first. */
export async function readRefusals(
  visit: Visit,
  domain: string | undefined,
  limit = maxRefusals,
): Promise<Answers<Refusal>> {
  const query = { limit, ...(domain !== undefined && { domain }) };
  const { values, problems } = await askLimiters(visit, (client) =>
    client.GET('/v1/refusals', { params: { query } }),
  );
  const refusals = values.flatMap((list) => list.refusals);
  return { values: refusals.sort((a, b) => Date.parse(b.time) - Date.parse(a.time)), problems };
}

/** Keys, and what is wrong with replicas whose part is missing. */
interface KeyRows {
  readonly keys: readonly KeyRow[];
  readonly problems: readonly Html[];
}

/** The heaviest and the last refused keys of all replicas, with their counters. */
export async function readKeys(visit: Visit, domain: string | undefined): Promise<KeyRows> {
  const query = { limit: maxKeys, ...(domain !== undefined && { domain }) };
  const [top, refusals, hour] = await Promise.all([
    askLimiters(visit, (client) => client.GET('/v1/top', { params: { query } })),
    readRefusals(visit, domain),
    readHour(visit, { limit: maxHourKeys, domain }),
  ]);
  const hours = new Map(hour.keys.map((key) => [descriptorName(key), key.hits]));
  const rates = new Map<string, { key: DomainDescriptor; rate: number | undefined }>();
  for (const { keys, seconds } of top.values)
    for (const { hits, ...key } of keys) {
      const rate = (rates.get(descriptorName(key))?.rate ?? 0) + hits / seconds;
      rates.set(descriptorName(key), { key, rate });
    }
  const refused = Map.groupBy(refusals.values, descriptorName);
  for (const [name, [key]] of refused)
    if (!rates.has(name) && key !== undefined) rates.set(name, { key, rate: undefined });
  const heaviest = [...rates.values()].sort((a, b) => (b.rate ?? 0) - (a.rate ?? 0)).slice(0, maxKeys);
  const counters = await readCounters(
    visit,
    heaviest.map(({ key }) => key),
  );
  const keys = heaviest.map(({ key: { domain, entries }, rate }) => {
    const name = descriptorName({ domain, entries });
    const known = refused.get(name) ?? [];
    return toRow(
      { domain, entries },
      { rate, refusals: known, counter: counters.byName.get(name), hitsByMinute: hours.get(name), visit },
    );
  });
  return { keys, problems: mergeProblems([top, refusals, hour, counters]) };
}

/** Keys with their counters, of those to which a limit applies. */
export async function readUsage(visit: Visit, keys: readonly DomainDescriptor[]): Promise<KeyRows> {
  const { byName, problems } = await readCounters(visit, keys);
  const rows = keys.flatMap(({ domain, entries }) => {
    const counter = byName.get(descriptorName({ domain, entries }));
    if (counter === undefined) return [];
    const unknown = { rate: undefined, hitsByMinute: undefined };
    return [toRow({ domain, entries }, { ...unknown, refusals: [], counter, visit })];
  });
  return { keys: rows, problems };
}

interface KeyParts {
  readonly rate: number | undefined;
  readonly refusals: readonly Refusal[];
  readonly counter: Schemas['Counter'] | undefined;
  readonly hitsByMinute: readonly number[] | undefined;
  readonly visit: Visit;
}

function toRow(key: DomainDescriptor, { rate, refusals, counter, hitsByMinute, visit }: KeyParts): KeyRow {
  const first = refusals.at(-1);
  return {
    ...{ ...key, rate, counter, hitsByMinute },
    refused: refusals.length,
    lastRefusedAt: refusals[0]?.time,
    isNew: first !== undefined && visit.nowMs - Date.parse(first.time) < newlyMs,
    state: getState(counter),
  };
}

/** A limit is near from four fifths on. */
const nearShare = 0.8;

export function getState(counter: Schemas['Counter'] | undefined): KeyState {
  if (counter === undefined) return 'free';
  if (counter.over) return 'over';
  return counter.count >= nearShare * getCapacity(counter) ? 'near' : 'free';
}

/** Hits that may be counted at once. */
export function getCapacity({ burst, requestsPerUnit }: Schemas['Counter']): number {
  return burst ?? requestsPerUnit;
}

interface Counters {
  readonly byName: ReadonlyMap<string, Schemas['Counter']>;
  readonly problems: readonly Html[];
}

/** The counters of keys by their name, in one request to each replica. */
async function readCounters(visit: Visit, keys: readonly DomainDescriptor[]): Promise<Counters> {
  const byDomain = Map.groupBy(
    keys.filter((key) => !isCut(key)),
    ({ domain }) => domain,
  );
  const found = new Map<string, Schemas['Counter']>();
  if (byDomain.size === 0) return { byName: found, problems: [] };
  const requests = [...byDomain].map(([domain, ofDomain]) => ({
    domain,
    descriptors: ofDomain.map(({ entries }) => ({ entries: [...entries] })),
  }));
  const { values, problems } = await askLimiters(visit, (client) =>
    client.POST('/v1/counters/peek/domains', { body: { requests } }),
  );
  for (const [position, ofDomain] of [...byDomain.values()].entries()) {
    const peeks = values.flatMap((list) => list.peeks[position] ?? []);
    for (const [index, key] of ofDomain.entries()) {
      const counter = fullest(peeks.flatMap((peek) => peek.descriptors[index]?.counter ?? []));
      if (counter !== undefined) found.set(descriptorName(key), counter);
    }
  }
  return { byName: found, problems };
}
