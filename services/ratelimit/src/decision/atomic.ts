import type { RuleNode } from '@tollgate/rules/rule-set';
import { isRefused, type Refuses, toCountedResult } from '../stores/all-or-none.ts';
import type { CheckResult, LimitCheck } from './check.ts';
import type { DescriptorLimit } from './find-limit.ts';
import { findInCache, type HitsContext, rememberRefusal } from './hits.ts';

interface RefusalOptions {
  /** QUOTA_MODE: all limits are quotas, and so are descriptors without a limit. */
  readonly quotaMode: boolean;
  /** Limits of all descriptors of the request. */
  readonly limits: readonly DescriptorLimit[];
}

interface AtomicOptions extends RefusalOptions {
  readonly nowSeconds: number;
}

type AtomicContext = Pick<HitsContext, 'store' | 'localCache'>;

/** Global shadow mode refuses no request. */
export function isAtomic(domain: RuleNode, { shadowMode }: { readonly shadowMode: boolean }): boolean {
  return domain.atomic === true && !shadowMode;
}

/**
 * Adds the hits of one request of a domain that is `atomic`: all of them, or those with `charge:
 * always` when the request is refused. A request that is not refused is counted as in any other
 * domain. Checks that have a result need no counter.
 */
export async function addAllOrNone(
  { store, localCache }: AtomicContext,
  checks: readonly LimitCheck[],
  options: AtomicOptions,
): Promise<void> {
  const { nowSeconds } = options;
  if (localCache !== undefined)
    for (const check of checks)
      if (check.hit.addend !== 0) check.result = findInCache(localCache, check, nowSeconds);
  if (isRefusedByKnown(checks, options)) {
    await chargeRefused({ store, localCache }, checks, nowSeconds);
    return;
  }
  const refusals = getRefusals(checks, options);
  const open = checks.flatMap((check, i) =>
    check.result === undefined ? [{ check, refuses: refusals[i] ?? 'alone' }] : [],
  );
  if (open.length === 0) return;
  if (store.takeAllOrNone === undefined) throw new TypeError('the store cannot decide a request together');
  const forgets = localCache?.forgets;
  const hits = open.map(({ check: { hit }, refuses }) => ({ ...hit, refuses }));
  const { refused, results } = await store.takeAllOrNone(hits);
  const cache = localCache?.forgets === forgets ? localCache : undefined;
  if (refused) withholdKnown(checks);
  for (const [i, { check }] of open.entries()) {
    check.result = results[i];
    if (cache !== undefined) rememberRefusal(cache, check, nowSeconds);
    const isCounted = !refused || check.hit.charge === 'always';
    if (!isCounted && check.result?.allowed === true)
      check.result = { ...check.result, withheld: true, unrecorded: true };
  }
}

/** Adds the hits with `charge: always` of a request that is refused without the store. */
async function chargeRefused(
  { store, localCache }: AtomicContext,
  checks: readonly LimitCheck[],
  nowSeconds: number,
): Promise<void> {
  const charged = checks.filter(({ result, hit }) => result === undefined && hit.charge === 'always');
  for (const check of checks) if (!charged.includes(check)) check.result = withhold(check);
  if (charged.length === 0) return;
  const forgets = localCache?.forgets;
  const results = await store.take(charged.map(({ hit }) => ({ ...hit, lease: undefined })));
  const cache = localCache?.forgets === forgets ? localCache : undefined;
  for (const [i, check] of charged.entries()) {
    const result = results[i];
    check.result = result && toCountedResult(check.hit, result);
    if (cache !== undefined) rememberRefusal(cache, check, nowSeconds);
  }
}

function withholdKnown(checks: readonly LimitCheck[]): void {
  for (const check of checks) if (check.result !== undefined) check.result = withhold(check);
}

/** The result in a request that another limit refuses, without a call of the store. */
function withhold({ limit, hit, result }: LimitCheck): CheckResult {
  if (result?.allowed === false) return result;
  const unknown = { allowed: true, used: 0, remaining: limit.rule.capacity, resetSeconds: hit.secondsLeft };
  return { ...unknown, withheld: true, unrecorded: true };
}

/** Whether a request is refused by the results that are known, whatever the others will be. */
export function isRefusedByKnown(checks: readonly LimitCheck[], options: RefusalOptions): boolean {
  if (!checks.some(({ result }) => result?.allowed === false)) return false;
  const kinds = getRefusals(checks, options);
  return isRefused(
    kinds,
    (kind) => kind,
    (_, i) => checks[i]?.result?.allowed === false,
  );
}

/**
 * Quotas refuse a request together, when all of them are used up. One in shadow mode never is, so
 * the others refuse nothing; nor do they when one is known to be left.
 */
function getRefusals(
  checks: readonly LimitCheck[],
  { quotaMode, limits }: RefusalOptions,
): readonly Refuses[] {
  const isQuota = ({ limit }: LimitCheck): boolean => quotaMode || limit.rule.quotaMode;
  const hasFreeQuota =
    (quotaMode && limits.includes(undefined)) ||
    checks.some((check) => isQuota(check) && (check.limit.rule.shadowMode || check.result?.allowed === true));
  return checks.map((check) => {
    if (check.limit.rule.shadowMode) return 'never';
    if (!isQuota(check)) return 'alone';
    return hasFreeQuota ? 'never' : 'together';
  });
}
