import type { CounterBackend, CounterHit } from '../backends/counter-backend.ts';
import type { RuleCounters } from '../stats/registry.ts';
import type { LimitInForce } from './limit.ts';
import type { LocalCache } from './local-cache.ts';

/** A descriptor that is counted. */
export interface Counted {
  readonly limit: LimitInForce;
  readonly hit: CounterHit;
  /** Statistics of the rule. */
  readonly counters: RuleCounters;
}

/** What counting one descriptor came to. */
export interface Count {
  /** The counter after the hits were added; meaningless when `fromLocalCache`. */
  readonly after: number;
  /** The counter was known to be over its limit, so the backend was not asked. */
  readonly fromLocalCache: boolean;
  readonly over: boolean;
}

/** Counts the hits of one request, in the order given. */
export type CountHits = (counted: readonly Counted[], nowSeconds: number) => Promise<readonly Count[]>;

/** What counting takes. */
export interface CountHitsDeps {
  readonly backend: CounterBackend;
  /** Absent when LOCAL_CACHE_SIZE_IN_BYTES is 0. */
  readonly localCache?: LocalCache | undefined;
  /** STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: a request that is rejected uses up nothing of its other limits. */
  readonly stopIncrementWhenOverLimit: boolean;
}

const knownOver: Count = { after: 0, fromLocalCache: true, over: true };

/** Makes the step that asks the local cache first and the backend for the rest. */
export function createCountHits({
  backend,
  localCache,
  stopIncrementWhenOverLimit,
}: CountHitsDeps): CountHits {
  async function hitsToAdd(asked: readonly Counted[], anyKnownOver: boolean): Promise<readonly CounterHit[]> {
    const hits = asked.map(({ hit }) => hit);
    if (!stopIncrementWhenOverLimit) {
      return hits;
    }
    if (anyKnownOver) {
      return hits.map(withoutAdding);
    }
    const current = await backend.read(hits);
    const exceeds = asked.map(({ limit, hit }, i) => (current[i] ?? 0) + hit.addend > limit.requestsPerUnit);
    return exceeds.includes(true)
      ? hits.map((hit, i) => (exceeds[i] === true ? hit : withoutAdding(hit)))
      : hits;
  }

  function judge({ limit, hit }: Counted, after: number, nowSeconds: number): Count {
    const over = after > limit.requestsPerUnit;
    if (over) {
      localCache?.add(hit.key, nowSeconds, nowSeconds + hit.secondsLeft);
    }
    return { after, fromLocalCache: false, over };
  }

  return async (counted, nowSeconds) => {
    const known = counted.map(({ hit }) => localCache?.has(hit.key, nowSeconds) ?? false);
    const asked = counted.filter((_, i) => known[i] !== true);
    if (asked.length === 0) {
      return counted.map(() => knownOver);
    }
    const after = await backend.add(await hitsToAdd(asked, asked.length < counted.length));
    let next = 0;
    return counted.map((one, i) =>
      known[i] === true ? knownOver : judge(one, after[next++] ?? 0, nowSeconds),
    );
  };
}

function withoutAdding(hit: CounterHit): CounterHit {
  return { ...hit, addend: 0 };
}
