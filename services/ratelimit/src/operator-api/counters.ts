import type { Logger } from '@tollgate/kit/logger';
import { isLimited, requireResult } from '../decision/check.ts';
import { keyPrefixes } from '../decision/counter-key.ts';
import type { DecisionContext } from '../decision/decide.ts';
import { peekChecks } from '../decision/peek.ts';
import type { RateLimitRequest } from '../decision/wire/request.ts';
import { errors } from '../errors.ts';
import type { CounterStore, SharedStore } from '../stores/counter-store.ts';
import { makeChange } from './audit.ts';
import type { CounterChanges } from './changes.ts';
import type { Caller } from './operations.ts';
import type { parsePrefix } from './requests.ts';

/** Parts of the counter API. */
export interface CounterContext {
  readonly decisions: DecisionContext;
  /** The store itself, whose counts include what replicas have reserved. */
  readonly store: CounterStore;
  readonly changes: CounterChanges;
  readonly logger: Logger;
}

/** More than any counter holds. */
const allHits = Number.MAX_SAFE_INTEGER;

/** A counter that was reset, and what it had. */
interface ResetCounter {
  readonly key: string;
  readonly count: number;
}

/**
 * Takes all hits back from the counters of a request, which any store does without a race with
 * hits that arrive meanwhile. Token buckets are full then.
 *
 * @throws AppError `descriptor_not_limited` when none of them has a counter.
 */
export async function resetCounters(
  context: CounterContext,
  request: RateLimitRequest,
  caller: Caller,
): Promise<readonly ResetCounter[]> {
  const checks = (await peekChecks(context, request)).filter(isLimited);
  if (checks.length === 0) throw errors.descriptor_not_limited();
  const keys = checks.map(({ hit }) => hit.key);
  await makeChange(context, {
    caller,
    describe: () => ({ action: 'reset', domain: request.domain, keys }),
    announcement: { keys },
    make: () => context.store.take(checks.map(({ hit }) => ({ ...hit, addend: -allHits }))),
  });
  return checks.map((check) => ({ key: check.hit.key, count: requireResult(check).used }));
}

/** The counters that were deleted. */
interface PrefixReset {
  /** Prefixes of fixed windows are first. */
  readonly prefixes: readonly string[];
  readonly deleted: number;
}

/**
 * Deletes all counters below entries. Keys of fixed windows escape nothing without
 * CACHE_KEY_ESCAPE, so `a` is also the beginning of `a_b`: counters of other values may be among
 * them.
 *
 * @throws AppError `store_lacks_feature` with memcached, which lists no keys.
 */
export async function resetByPrefix(
  context: CounterContext,
  { domain, ...begin }: ReturnType<typeof parsePrefix>,
  caller: Caller,
): Promise<PrefixReset> {
  const { shared } = context.store;
  if (shared === undefined) {
    throw errors.store_lacks_feature({ message: 'memcached lists no keys: reset exact descriptors' });
  }
  const { windows, others } = keyPrefixes(context.decisions.options, domain, begin);
  const prefixes = [...new Set([windows, others])];
  const deleted = await makeChange(context, {
    caller,
    describe: (count) => ({ action: 'reset by prefix', domain, prefixes, deleted: count }),
    // Only windows are in caches.
    announcement: { prefix: windows },
    make: () => deleteAll(shared, prefixes),
  });
  return { prefixes, deleted };
}

async function deleteAll(shared: SharedStore, prefixes: readonly string[]): Promise<number> {
  let deleted = 0;
  for (const prefix of prefixes) deleted += await shared.deleteByPrefix(prefix);
  return deleted;
}
