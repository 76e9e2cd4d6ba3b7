import { randomBytes } from 'node:crypto';
import {
  createHit,
  type DescriptorCheck,
  isLimited,
  type LimitCheck,
  toRefusedResult,
} from '../decision/check.ts';
import { addRequest } from '../decision/decide.ts';
import { evaluate, getOverallCode } from '../decision/evaluate.ts';
import { addHits, peekHits } from '../decision/hits.ts';
import { findRequestLimits } from '../decision/peek.ts';
import { type RecordedCheck, recordResult } from '../decision/stats.ts';
import { getRetryAfter } from '../decision/wire/headers.ts';
import type { RateLimitRequest } from '../decision/wire/request.ts';
import { Code } from '../decision/wire/response.ts';
import { errors } from '../errors.ts';
import type { Hit } from '../stores/counter-store.ts';
import type { CounterContext } from './counters.ts';
import { decodeId, encodeId, maxIdChars, type Reservation, type TakenHits } from './reservation-id.ts';

export interface ReservationContext extends CounterContext {
  /** ADMIN_TOKEN: all replicas have the same. Empty with client certificates only. */
  readonly signingKey: string;
}

type Reserved =
  | { readonly ok: true; readonly id: string; readonly until: string }
  | { readonly ok: false; readonly retryAfterSeconds: number };

/** The hits of a reservation. */
interface Requested {
  readonly domain: string;
  /** Checks of all descriptors. */
  readonly checks: readonly DescriptorCheck<RecordedCheck>[];
  readonly limited: readonly RecordedCheck[];
}

/**
 * Takes hits from all limits of a request. A refused reservation takes none.
 *
 * @throws AppError `descriptor_not_limited` when there is no limit, `reservation_too_large` when
 * the hits never fit, `reservations_need_token`.
 */
export async function reserve(
  context: ReservationContext,
  request: RateLimitRequest,
  { hits, ttlSeconds }: { readonly hits: number; readonly ttlSeconds: number },
): Promise<Reserved> {
  const { decisions } = context;
  // An id that is not signed could name any key of the store.
  if (context.signingKey === '') throw errors.reservations_need_token();
  const now = decisions.nowSeconds();
  const requested = toRequested(context, request, hits);
  makeConditional(requested);
  const { limited } = requested;
  if (limited.length === 0) throw errors.descriptor_not_limited();
  requireFitting(context, requested, hits);
  const taken = limited.map(({ hit }) => toTaken(hit, now));
  const reservation: Reservation = {
    domain: request.domain,
    descriptors: request.descriptors.map(({ entries }) => entries.map(({ key, value }) => ({ key, value }))),
    ...getOwnLimits(request),
    hits,
    taken,
    untilSeconds: now + ttlSeconds,
    nonce: randomBytes(16).toString('base64url'),
  };
  if (encodeId(context.signingKey, reservation).length > maxIdChars) {
    throw errors.malformed_request({ message: 'the descriptors are too long for a reservation' });
  }
  await takeHits(context, requested, hits);
  const isTaken = !isRefused(context, requested);
  if (isTaken) record(context, limited);
  decisions.activity?.record(request.domain, limited, isTaken ? Code.OK : Code.OVER_LIMIT);
  if (!isTaken) {
    const retryAfterSeconds = Math.max(1, getRetryAfter(evaluate(decisions.options, requested.checks)));
    return { ok: false, retryAfterSeconds };
  }
  const until = new Date(reservation.untilSeconds * 1000).toISOString();
  const added = getAdded(limited).map(({ hit }) => toTaken(hit, now));
  return { ok: true, id: encodeId(context.signingKey, { ...reservation, taken: added }), until };
}

function getOwnLimits({ descriptors }: RateLimitRequest): Pick<Reservation, 'limits'> {
  if (descriptors.every(({ limit }) => limit === undefined)) return {};
  return {
    limits: descriptors.map(({ limit }) =>
      limit === undefined ? null : { requestsPerUnit: limit.requestsPerUnit, unit: limit.unit },
    ),
  };
}

/** @throws AppError `reservation_too_large` when the limits would refuse the hits at any time. */
function requireFitting(context: ReservationContext, requested: Requested, hits: number): void {
  const { domain, limited } = requested;
  for (const check of limited) {
    const { limit, hit } = check;
    // An override ends, so the hits may fit afterwards.
    const isOverridden = context.decisions.overrides?.find(domain, limit.keyEntries) !== undefined;
    const empty = { used: 0, remaining: limit.rule.capacity, resetSeconds: hit.secondsLeft };
    check.result = { ...empty, allowed: hits <= limit.rule.capacity || isOverridden };
  }
  if (!isRefused(context, requested)) return;
  const tooSmall = limited.filter(({ limit, result }) => result?.allowed === false && !limit.rule.shadowMode);
  const names = tooSmall.map(
    ({ limit }) => `${[domain, ...limit.metricPath].join('.')}: ${limit.rule.capacity}`,
  );
  throw errors.reservation_too_large({
    message: `more hits than the limit ever allows at once (${names.join(', ')}): reserve fewer`,
  });
}

/** Fills in the results of the hits, of which none stay counted when they are refused. */
async function takeHits(context: ReservationContext, requested: Requested, hits: number): Promise<void> {
  const { decisions, store } = context;
  const { checks, limited } = requested;
  const domain = decisions.rules()?.domains.get(requested.domain);
  if (domain === undefined) throw errors.no_configuration();
  const isAtomic = domain.atomic === true;
  if (!isAtomic) {
    await expectResults(context, limited, hits);
    if (isRefused(context, requested)) return;
  }
  const { options } = decisions;
  for (const check of limited) check.result = undefined;
  await addRequest({ store, options, stopIncrementWhenOverLimit: false }, limited, {
    domain,
    limits: checks.map(({ limit }) => limit),
    nowSeconds: decisions.nowSeconds(),
  });
  if (!isAtomic && isRefused(context, requested)) await giveBackHits(context, getAdded(limited), hits);
}

/**
 * Fills in the results that the hits would have. Hits that do not fit would be in the counters for
 * a moment, and others refused because of them.
 */
async function expectResults(
  context: ReservationContext,
  limited: readonly LimitCheck[],
  hits: number,
): Promise<void> {
  const { store, decisions } = context;
  const states = await peekHits(store, limited);
  for (const [i, check] of limited.entries()) {
    const { capacity, secondsLeft } = check.hit;
    const used = Math.max(0, states[i]?.used ?? 0) + hits;
    const remaining = Math.max(0, capacity - used);
    check.result =
      used <= capacity
        ? { allowed: true, used, remaining, resetSeconds: secondsLeft }
        : toRefusedResult(check);
  }
  // Only hits that are refused, and so take nothing, show how long to wait for so many.
  const refusing = limited.filter(({ hit, result }) => hit.rate !== undefined && result?.allowed === false);
  await addHits({ store, stopIncrementWhenOverLimit: false }, refusing, decisions.nowSeconds());
  // They fit after all when others have given hits back meanwhile.
  const fitted = refusing.filter(({ result }) => result?.allowed === true);
  if (fitted.length > 0) await giveBackHits(context, fitted, hits);
}

/** The checks whose hits are counted: refused hits take nothing except from windows. */
function getAdded(limited: readonly LimitCheck[]): readonly LimitCheck[] {
  return limited.filter(({ hit, result }) => hit.rate === undefined || result?.allowed === true);
}

interface Committed {
  readonly domain: string;
  readonly reserved: number;
  readonly hits: number;
  /** Hits were added, and a limit was exceeded by that. */
  readonly over: boolean;
}

/**
 * Replaces the hits of a reservation by the real number, once. What is left is given back to the
 * windows that it was taken from; more is added to those of now, also beyond the limit, or uses up
 * what is left where refused hits are not charged.
 *
 * @throws AppError when the id is invalid, has expired, or was committed before.
 */
export async function commit(context: ReservationContext, id: string, hits: number): Promise<Committed> {
  const { decisions, store } = context;
  const reservation = decodeId(context.signingKey, id);
  const { domain, hits: reserved, taken, untilSeconds, nonce } = reservation;
  const now = decisions.nowSeconds();
  const leftSeconds = untilSeconds - now;
  if (leftSeconds <= 0) throw errors.reservation_expired();
  // A counter decides which of several commits is the first, in any store.
  const key = `${decisions.options.cacheKeyPrefix}tollgate:reservation:${nonce}`;
  const lifetime = { secondsLeft: leftSeconds + 60, ttlSeconds: leftSeconds + 60 };
  const [committed] = await store.take([{ key, addend: 1, capacity: 1, unit: 'period', ...lifetime }]);
  if (committed?.allowed !== true) throw errors.reservation_committed();
  const descriptors = reservation.descriptors.map((entries, i) => ({
    entries,
    limit: reservation.limits?.[i] ?? undefined,
  }));
  const request = { domain, descriptors, hitsAddend: 0 };
  if (hits <= reserved) {
    for (const { stats } of toRequested(context, request, 0).limited)
      stats.totalNegativeHits += reserved - hits;
    if (hits < reserved) await giveBack(context, taken, reserved - hits);
    return { domain, reserved, hits, over: false };
  }
  const { limited } = toRequested(context, request, hits - reserved);
  await addHits({ store, stopIncrementWhenOverLimit: false }, limited, now);
  record(context, limited);
  const exceeded = limited.filter(({ result }) => result?.allowed === false);
  await useUp(
    context,
    exceeded.filter(({ hit }) => hit.rate !== undefined && hit.rate.maxDebt === undefined),
  );
  return { domain, reserved, hits, over: exceeded.length > 0 };
}

/** Limits that are not counted in windows and charge only what is allowed took none. */
async function useUp({ store }: ReservationContext, exceeded: readonly LimitCheck[]): Promise<void> {
  if (exceeded.length === 0) return;
  const states = await peekHits(store, exceeded);
  await store.take(exceeded.map(({ hit }, i) => ({ ...hit, addend: states[i]?.remaining ?? 0 })));
}

function toRequested({ decisions }: ReservationContext, request: RateLimitRequest, hits: number): Requested {
  const { domain } = request;
  const nowSeconds = decisions.nowSeconds();
  const checks = findRequestLimits(decisions, request).map((limit): DescriptorCheck<RecordedCheck> => {
    if (limit?.kind !== 'limited') return { limit };
    const hit = createHit(decisions, limit, { domain, addend: hits, nowSeconds });
    return { limit, hit, stats: decisions.stats.getRule(domain, limit), result: undefined };
  });
  return { domain, checks, limited: checks.filter(isLimited) };
}

/** A reservation is taken as a whole or not at all, whatever its limits charge. */
function makeConditional({ limited }: Requested): void {
  for (const check of limited) {
    const rate = check.hit.rate && { ...check.hit.rate, maxDebt: undefined };
    check.limit = { ...check.limit, rule: { ...check.limit.rule, rate, charge: 'allowed' } };
    check.hit = { ...check.hit, rate, charge: 'allowed' };
  }
}

function toTaken({ key, unit, secondsLeft, rate, capacity }: Hit, now: number): TakenHits {
  return { key, unit, endSeconds: now + secondsLeft, ...(rate && { rate }), capacity };
}

function record({ decisions }: ReservationContext, limited: readonly RecordedCheck[]): void {
  for (const check of limited) {
    check.stats.totalHits += check.hit.addend;
    recordResult(check, decisions.options);
  }
}

function isRefused({ decisions: { options } }: ReservationContext, { checks }: Requested): boolean {
  return !options.shadowMode && getOverallCode(evaluate(options, checks)) === Code.OVER_LIMIT;
}

function giveBackHits(
  context: ReservationContext,
  checks: readonly LimitCheck[],
  hits: number,
): Promise<void> {
  const now = context.decisions.nowSeconds();
  return giveBack(
    context,
    checks.map(({ hit }) => toTaken(hit, now)),
    hits,
  );
}

/** Tells other replicas only of counters that they may know as over the limit. */
async function giveBack(
  { decisions, store, changes }: ReservationContext,
  taken: readonly TakenHits[],
  hits: number,
): Promise<void> {
  const now = decisions.nowSeconds();
  const results = await store.take(
    taken.map(({ key, unit, endSeconds, rate, capacity }) => {
      const secondsLeft = Math.max(1, endSeconds - now);
      return { key, unit, addend: -hits, capacity, secondsLeft, ttlSeconds: secondsLeft, rate };
    }),
  );
  const keys = taken
    .filter(({ rate, capacity }, i) => rate === undefined && (results[i]?.used ?? 0) + hits >= capacity)
    .map(({ key }) => key);
  if (keys.length > 0) await changes.announce({ keys });
}
