import { randomBytes } from 'node:crypto';
import type { Hit } from '../backends/counter-backend.ts';
import { errors } from '../errors.ts';
import { getRetryAfter } from '../ratelimit/headers.ts';
import { addHits, type HitResult, type LimitedDescriptor, peekHits } from '../ratelimit/hits.ts';
import type { DescriptorLimit } from '../ratelimit/limit.ts';
import type { RateLimitRequest } from '../ratelimit/request.ts';
import { Code, type DescriptorStatus } from '../ratelimit/response.ts';
import { addRequest, createHit, getOverallCode } from '../ratelimit/service.ts';
import { nearThreshold, recordResult } from '../ratelimit/stats.ts';
import type { CounterContext } from './counters.ts';
import { findRequestLimits } from './peek.ts';
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
  /** Of all descriptors. */
  readonly limits: readonly DescriptorLimit[];
  readonly limited: readonly LimitedDescriptor[];
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
  const requested = toConditional(toRequested(context, request, hits));
  const { limited } = requested;
  if (limited.length === 0) throw errors.descriptor_not_limited();
  requireFitting(context, requested, hits);
  const taken = limited.map(({ limit, hit }) => toTaken(hit, limit.capacity, now));
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
  const results = await takeHits(context, requested, hits);
  const statuses = toStatuses(context, requested, results);
  if (isRefused(context, statuses)) {
    decisions.activity?.record(request.domain, limited, { results, code: Code.OVER_LIMIT });
    return { ok: false, retryAfterSeconds: Math.max(1, getRetryAfter(statuses)) };
  }
  record(context, limited, results);
  decisions.activity?.record(request.domain, limited, { results, code: Code.OK });
  const until = new Date(reservation.untilSeconds * 1000).toISOString();
  return {
    ok: true,
    id: encodeId(context.signingKey, { ...reservation, taken: getAdded(taken, results) }),
    until,
  };
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
  const results = limited.map(({ limit }) => {
    // An override ends, so the hits may fit afterwards.
    const isOverridden = context.decisions.overrides?.find(domain, limit.keyEntries) !== undefined;
    return { over: hits > limit.capacity && !isOverridden };
  });
  if (!isRefused(context, toStatuses(context, requested, results))) return;
  const tooSmall = limited.filter(({ limit }, i) => results[i]?.over === true && !limit.shadowMode);
  const names = tooSmall.map(({ limit }) => `${[domain, ...limit.metricPath].join('.')}: ${limit.capacity}`);
  throw errors.reservation_too_large({
    message: `more hits than the limit ever allows at once (${names.join(', ')}): reserve fewer`,
  });
}

/** The results of the hits, of which none stay counted when they are refused. */
async function takeHits(
  context: ReservationContext,
  requested: Requested,
  hits: number,
): Promise<readonly HitResult[]> {
  const { decisions, backend } = context;
  const { limits, limited } = requested;
  const nowSeconds = decisions.nowSeconds();
  const domain = decisions.rules()?.domains.get(requested.domain);
  if (domain === undefined) throw errors.no_configuration();
  const isAtomic = domain.atomic === true;
  if (!isAtomic) {
    const expected = await expectResults(context, limited, hits);
    if (isRefused(context, toStatuses(context, requested, expected))) return expected;
  }
  const { options } = decisions;
  const results = await addRequest({ backend, options, stopIncrementWhenOverLimit: false }, limited, {
    domain,
    limits,
    nowSeconds,
  });
  if (!isAtomic && isRefused(context, toStatuses(context, requested, results))) {
    const taken = limited.map(({ limit, hit }) => toTaken(hit, limit.capacity, nowSeconds));
    await giveBack(context, getAdded(taken, results), hits);
  }
  return results;
}

/**
 * The results that the hits would have. Hits that do not fit would be in the counters for a moment,
 * and others refused because of them.
 */
async function expectResults(
  context: ReservationContext,
  limited: readonly LimitedDescriptor[],
  hits: number,
): Promise<readonly HitResult[]> {
  const { backend, decisions } = context;
  const now = decisions.nowSeconds();
  const states = await peekHits(backend, limited);
  const counts = states.map(({ count }) => Math.max(0, count) + hits);
  const isOver = ({ limit }: LimitedDescriptor, i: number): boolean => (counts[i] ?? 0) > limit.capacity;
  // Only hits that are refused, and so take nothing, show how long to wait for so many.
  const refusing = limited.filter((one, i) => one.hit.rate !== undefined && isOver(one, i));
  const waits = await addHits({ backend, stopIncrementWhenOverLimit: false }, refusing, now);
  // They fit after all when others have given hits back meanwhile.
  const fitted = refusing.filter((_, i) => waits[i]?.over === false);
  if (fitted.length > 0) {
    const taken = fitted.map(({ limit, hit }) => toTaken(hit, limit.capacity, now));
    await giveBack(context, taken, hits);
  }
  return limited.map(
    (one, i) =>
      waits[refusing.indexOf(one)] ?? { count: counts[i] ?? 0, fromLocalCache: false, over: isOver(one, i) },
  );
}

/** A refused hit takes nothing from limits that are not counted in windows. */
function getAdded(taken: readonly TakenHits[], results: readonly HitResult[]): readonly TakenHits[] {
  return taken.filter(({ rate }, i) => rate === undefined || results[i]?.over !== true);
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
  const { decisions, backend } = context;
  const reservation = decodeId(context.signingKey, id);
  const { domain, hits: reserved, taken, untilSeconds, nonce } = reservation;
  const now = decisions.nowSeconds();
  const leftSeconds = untilSeconds - now;
  if (leftSeconds <= 0) throw errors.reservation_expired();
  // A counter decides which of several commits is the first, in any store.
  const key = `${decisions.options.cacheKeyPrefix}tollgate:reservation:${nonce}`;
  const lifetime = { secondsLeft: leftSeconds + 60, ttlSeconds: leftSeconds + 60 };
  const [commits] = await backend.add([{ key, addend: 1, unit: 'period', ...lifetime }]);
  if (commits !== 1) throw errors.reservation_committed();
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
  const results = await addHits({ backend, stopIncrementWhenOverLimit: false }, limited, now);
  record(context, limited, results);
  const exceeded = limited.filter((_, i) => results[i]?.over === true);
  await useUp(
    context,
    exceeded.filter(({ hit }) => hit.rate !== undefined && hit.rate.maxDebt === undefined),
  );
  return { domain, reserved, hits, over: exceeded.length > 0 };
}

/** Limits that are not counted in windows and charge only what is allowed took none. */
async function useUp({ backend }: ReservationContext, exceeded: readonly LimitedDescriptor[]): Promise<void> {
  if (exceeded.length === 0) return;
  const states = await peekHits(backend, exceeded);
  await backend.add(
    exceeded.map(({ limit, hit }, i) => ({
      ...hit,
      addend: Math.max(0, limit.capacity - (states[i]?.count ?? 0)),
    })),
  );
}

function toRequested({ decisions }: ReservationContext, request: RateLimitRequest, hits: number): Requested {
  const { domain } = request;
  const now = decisions.nowSeconds();
  const limits = findRequestLimits(decisions, request);
  const limited = limits.flatMap((limit) => {
    if (limit?.kind !== 'limited') return [];
    const hit = createHit(decisions, domain, limit, hits, now);
    return [{ limit, hit, stats: decisions.stats.getRule(domain, limit) }];
  });
  return { domain, limits, limited };
}

/** A reservation is taken as a whole or not at all, whatever its limits charge. */
function toConditional({ domain, limits, limited }: Requested): Requested {
  const conditional = limited.map(({ limit, hit, stats }) => {
    const rate = hit.rate && { ...hit.rate, maxDebt: undefined };
    return { limit: { ...limit, rate, charge: 'allowed' as const }, hit: { ...hit, rate }, stats };
  });
  return { domain, limits, limited: conditional };
}

function toTaken({ key, unit, secondsLeft, rate }: Hit, capacity: number, now: number): TakenHits {
  return { key, unit, endSeconds: now + secondsLeft, ...(rate && { rate }), capacity };
}

function record(
  { decisions }: ReservationContext,
  limited: readonly LimitedDescriptor[],
  results: readonly HitResult[],
): void {
  for (const [i, descriptor] of limited.entries()) {
    const result = results[i];
    if (result === undefined) continue;
    descriptor.stats.totalHits += descriptor.hit.addend;
    recordResult(
      descriptor,
      result,
      nearThreshold(descriptor.limit.capacity, decisions.options.nearLimitRatio),
    );
  }
}

type Status = Pick<DescriptorStatus, 'code' | 'quota' | 'secondsUntilReset'>;

/** The part of the statuses of a decision that says whether and how long it refuses. */
function toStatuses(
  { decisions: { options } }: ReservationContext,
  { limits, limited }: Requested,
  results: readonly Pick<HitResult, 'over' | 'resetSeconds'>[],
): readonly Status[] {
  let next = 0;
  return limits.map((limit) => {
    // With QUOTA_MODE, a descriptor without a limit is a quota that is never used up.
    if (limit?.kind !== 'limited') return { code: Code.OK, quota: limit === undefined && options.quotaMode };
    const result = results[next];
    const hit = limited[next]?.hit;
    next += 1;
    return {
      code: result?.over === true && !limit.shadowMode ? Code.OVER_LIMIT : Code.OK,
      quota: options.quotaMode || limit.quotaMode,
      secondsUntilReset: result?.resetSeconds ?? hit?.secondsLeft ?? 0,
    };
  });
}

function isRefused({ decisions }: ReservationContext, statuses: readonly Status[]): boolean {
  return !decisions.options.shadowMode && getOverallCode(statuses) === Code.OVER_LIMIT;
}

/** Tells other replicas only of counters that they may know as over the limit. */
async function giveBack(
  { decisions, backend, changes }: ReservationContext,
  taken: readonly TakenHits[],
  hits: number,
): Promise<void> {
  const now = decisions.nowSeconds();
  const counts = await backend.add(
    taken.map(({ key, unit, endSeconds, rate }) => {
      const secondsLeft = Math.max(1, endSeconds - now);
      return { key, unit, addend: -hits, secondsLeft, ttlSeconds: secondsLeft, rate };
    }),
  );
  const keys = taken
    .filter(({ rate, capacity }, i) => rate === undefined && (counts[i] ?? 0) + hits >= capacity)
    .map(({ key }) => key);
  if (keys.length > 0) await changes.announce({ keys });
}
