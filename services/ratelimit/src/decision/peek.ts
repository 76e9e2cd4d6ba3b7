import type { RuleNode } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import { getAlgorithm } from '../algorithms/registry.ts';
import { errors } from '../errors.ts';
import type { CounterStore } from '../stores/counter-store.ts';
import { createHit, type DescriptorCheck, isLimited, type LimitCheck, requireResult } from './check.ts';
import type { DecisionContext } from './decide.ts';
import { evaluate, getOverallCode } from './evaluate.ts';
import { type DescriptorLimit, findLimits, type Limit } from './find-limit.ts';
import { peekHits } from './hits.ts';
import type { PublicOverride } from './overrides.ts';
import { getHitsAddend, type RateLimitRequest } from './wire/request.ts';
import { Code } from './wire/response.ts';

/** Parts that a peek needs: `/explain` has it without the counter API. */
export interface PeekContext {
  readonly decisions: Pick<
    DecisionContext,
    'rules' | 'overrides' | 'options' | 'nowSeconds' | 'random' | 'usageChecks'
  >;
  /** The store itself, whose counts include what replicas have reserved. */
  readonly store: Pick<CounterStore, 'take' | 'peek'>;
}

/** State of a counter, and the limit that applies to it. */
export interface CounterState {
  /** The metric path of the rule, or the entries of a descriptor with a limit of its own. */
  readonly rule: string;
  readonly name?: string;
  readonly algorithm: string;
  /** The unit, or a period: `5m`. */
  readonly unit: string;
  readonly requestsPerUnit: number;
  /** Burst of a token bucket. */
  readonly burst?: number;
  readonly shadowMode: boolean;
  readonly key: string;
  readonly count: number;
  readonly remaining: number;
  /** The hits of the request would exceed the limit now, whatever that does to the request. */
  readonly over: boolean;
  readonly resetSeconds: number;
  /** The limit is not used as it is meant to be. */
  readonly warning?: string;
  /** The limit is that of an override. */
  readonly override?: PublicOverride;
}

interface DescriptorState {
  readonly entries: RateLimitRequest['descriptors'][number]['entries'];
  /** `none`: no rule matches, or another one replaces it. */
  readonly outcome: 'limited' | 'unlimited' | 'none';
  readonly counter?: CounterState;
}

interface RequestState {
  readonly descriptors: readonly DescriptorState[];
  /** The request would be refused now. */
  readonly wouldBeRefused: boolean;
}

/** The counters of a request. Changes nothing. */
export async function peekCounters(
  { decisions, store }: PeekContext,
  request: RateLimitRequest,
): Promise<RequestState> {
  const root = decisions.rules()?.domains.get(request.domain);
  const checks = await peekChecks({ decisions, store }, request);
  for (const [i, descriptor] of request.descriptors.entries()) {
    const check = checks[i];
    if (check?.hit === undefined) continue;
    const hits = getHitsAddend(request, descriptor);
    const result = requireResult(check);
    const allowed = fits(check, hits === 0 ? getCheckedHits(check.limit, root) : hits);
    check.result = { ...result, allowed };
  }
  const descriptors = request.descriptors.map(({ entries }, i): DescriptorState => {
    const check = checks[i];
    const outcome = { entries: entries.map(({ key, value }) => ({ key, value })) };
    if (check?.hit === undefined)
      return { ...outcome, outcome: check?.limit === undefined ? 'none' : 'unlimited' };
    const override = decisions.overrides?.findPublic(request.domain, check.limit.keyEntries);
    const warning = root && decisions.usageChecks?.getWarning(check.limit, root);
    const counter = { ...toState(check), ...(warning && { warning }), ...(override && { override }) };
    return { ...outcome, outcome: 'limited', counter };
  });
  const code = getOverallCode(evaluate(decisions.options, checks));
  const wouldBeRefused = !decisions.options.shadowMode && code === Code.OVER_LIMIT;
  return { descriptors, wouldBeRefused };
}

/** The checks of a request, whose results are those of no further hits. */
export async function peekChecks(
  { decisions, store }: PeekContext,
  request: RateLimitRequest,
): Promise<readonly DescriptorCheck[]> {
  const nowSeconds = decisions.nowSeconds();
  const { domain } = request;
  const checks = findRequestLimits(decisions, request).map(
    (limit): DescriptorCheck =>
      limit?.kind === 'limited'
        ? { limit, hit: createHit(decisions, limit, { domain, addend: 0, nowSeconds }), result: undefined }
        : { limit },
  );
  const limited = checks.filter(isLimited);
  const results = await peekHits(store, limited);
  for (const [i, check] of limited.entries()) check.result = results[i];
  return checks;
}

function fits(check: LimitCheck, hits: number): boolean {
  return hits < 0 || Math.max(0, requireResult(check).used) + hits <= check.limit.rule.capacity;
}

/** The hits that a check of 0 hits needs: one, except in windows that count as the original. */
function getCheckedHits({ rule: { rate, charge } }: Limit, root: RuleNode | undefined): number {
  return rate !== undefined || (root?.atomic === true && charge === 'always') ? 1 : 0;
}

/** @throws AppError when no rules are loaded. */
export function findRequestLimits(
  { rules, overrides, options }: PeekContext['decisions'],
  { domain, descriptors }: RateLimitRequest,
): readonly DescriptorLimit[] {
  const current = rules();
  if (current === undefined) throw errors.no_configuration();
  const root = current.domains.get(domain);
  if (root === undefined) return descriptors.map(() => undefined);
  const limits = findLimits(root, descriptors, options.calendarMonths);
  return overrides?.apply(domain, limits) ?? limits;
}

function toState(check: LimitCheck): CounterState {
  const { limit, hit } = check;
  const { allowed, used, remaining, resetSeconds } = requireResult(check);
  return { ...describeLimit(limit), key: hit.key, count: used, remaining, over: !allowed, resetSeconds };
}

/** A limit, as the counter API describes it. */
export function describeLimit({ rule, metricPath }: Pick<Limit, 'rule' | 'metricPath'>) {
  const { name, rate, unit, unitSeconds, requestsPerUnit, shadowMode } = rule;
  const algorithm = getAlgorithm(rate);
  return {
    rule: metricPath.join('.'),
    ...(name !== '' && { name }),
    algorithm: algorithm.name,
    unit: unit ?? formatPeriod(unitSeconds),
    requestsPerUnit,
    ...(rate !== undefined && algorithm.hasBurst && { burst: rate.burst }),
    shadowMode,
  };
}
