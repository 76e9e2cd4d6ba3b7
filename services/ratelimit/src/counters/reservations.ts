import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Entry } from '@tollgate/rules/match';
import type { Rate } from '@tollgate/rules/rule-set';
import type { Hit, HitUnit } from '../backends/counter-backend.ts';
import { errors } from '../errors.ts';
import { addHits, type HitResult, type LimitedDescriptor, peekHits } from '../ratelimit/hits.ts';
import type { RateLimitRequest } from '../ratelimit/request.ts';
import { Code } from '../ratelimit/response.ts';
import { createHit, getOverallCode } from '../ratelimit/service.ts';
import { nearThreshold, recordResult } from '../ratelimit/stats.ts';
import { type CounterContext, findRequestLimits } from './counters.ts';

/** Hits that were added to a counter. */
interface TakenHits {
  readonly key: string;
  readonly unit: HitUnit;
  /** End of the window, Unix time. */
  readonly endSeconds: number;
  readonly rate?: Rate;
  /** The limit, of which other replicas may know that it was reached. */
  readonly capacity: number;
}

/** Hits that were taken, and of which the real number is not known yet. Its text is its id. */
interface Reservation {
  readonly domain: string;
  readonly descriptors: readonly (readonly Entry[])[];
  readonly hits: number;
  readonly taken: readonly TakenHits[];
  /** Unix time. */
  readonly untilSeconds: number;
  readonly nonce: string;
}

export interface ReservationContext extends CounterContext {
  /** ADMIN_TOKEN: all replicas have the same. Empty with client certificates only. */
  readonly signingKey: string;
}

type Reserved =
  | { readonly ok: true; readonly id: string; readonly until: string }
  | { readonly ok: false; readonly retryAfterSeconds: number };

/** The body of a commit is limited, too. */
export const maxIdChars = 16 * 1024;

/**
 * Takes hits from all limits of a request. A refused reservation takes none.
 *
 * @throws AppError `descriptor_not_limited` when there is no limit, `reservations_need_token`.
 */
export async function reserve(
  context: ReservationContext,
  request: RateLimitRequest,
  { hits, ttlSeconds }: { readonly hits: number; readonly ttlSeconds: number },
): Promise<Reserved> {
  const { decisions, backend } = context;
  // An id that is not signed could name any key of the store.
  if (context.signingKey === '') throw errors.reservations_need_token();
  const now = decisions.nowSeconds();
  const limited = toLimited(context, request, hits);
  if (limited.length === 0) throw errors.descriptor_not_limited();
  const taken = limited.map(({ limit, hit }) => toTaken(hit, limit.capacity, now));
  const reservation: Reservation = {
    domain: request.domain,
    descriptors: request.descriptors.map(({ entries }) => entries.map(({ key, value }) => ({ key, value }))),
    hits,
    taken,
    untilSeconds: now + ttlSeconds,
    nonce: randomBytes(16).toString('base64url'),
  };
  if (encode(context, reservation).length > maxIdChars) {
    throw errors.malformed_request({ message: 'the descriptors are too long for a reservation' });
  }
  // Hits that do not fit would be in the counters for a moment, and others refused because of them.
  const states = await peekHits(backend, limited);
  const expected = states.map((state, i) => {
    const count = Math.max(0, state.count) + hits;
    return { ...state, count, over: count > (limited[i]?.limit.capacity ?? 0) };
  });
  if (isRefused(context, limited, expected)) return refuse(context, request, { limited, results: expected });
  const results = await addHits({ backend, stopIncrementWhenOverLimit: false }, limited, now);
  record(context, limited, results);
  // A refused hit takes nothing from limits that are not counted in windows.
  const added = taken.filter(({ rate }, i) => rate === undefined || results[i]?.over !== true);
  if (isRefused(context, limited, results)) {
    await giveBack(context, added, hits);
    return refuse(context, request, { limited, results });
  }
  decisions.activity?.record(request.domain, limited, { results, code: Code.OK });
  const until = new Date(reservation.untilSeconds * 1000).toISOString();
  return { ok: true, id: encode(context, { ...reservation, taken: added }), until };
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
 * what is left where a count cannot exceed its limit.
 *
 * @throws AppError when the id is invalid, has expired, or was committed before.
 */
export async function commit(context: ReservationContext, id: string, hits: number): Promise<Committed> {
  const { decisions, backend } = context;
  const reservation = decode(context, id);
  const { domain, descriptors, hits: reserved, taken, untilSeconds, nonce } = reservation;
  const now = decisions.nowSeconds();
  const leftSeconds = untilSeconds - now;
  if (leftSeconds <= 0) throw errors.reservation_expired();
  // A counter decides which of several commits is the first, in any store.
  const key = `${decisions.options.cacheKeyPrefix}tollgate:reservation:${nonce}`;
  const lifetime = { secondsLeft: leftSeconds + 60, ttlSeconds: leftSeconds + 60 };
  const [commits] = await backend.add([{ key, addend: 1, unit: 'period', ...lifetime }]);
  if (commits !== 1) throw errors.reservation_committed();
  const request = { domain, descriptors: descriptors.map((entries) => ({ entries })), hitsAddend: 0 };
  if (hits <= reserved) {
    for (const { stats } of toLimited(context, request, 0)) stats.totalNegativeHits += reserved - hits;
    if (hits < reserved) await giveBack(context, taken, reserved - hits);
    return { domain, reserved, hits, over: false };
  }
  const limited = toLimited(context, request, hits - reserved);
  const results = await addHits({ backend, stopIncrementWhenOverLimit: false }, limited, now);
  record(context, limited, results);
  const exceeded = limited.filter((_, i) => results[i]?.over === true);
  await useUp(
    context,
    exceeded.filter(({ hit }) => hit.rate !== undefined),
  );
  return { domain, reserved, hits, over: exceeded.length > 0 };
}

/** Limits that are not counted in windows take all hits or none, so they took none. */
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

function toLimited(
  { decisions }: ReservationContext,
  request: RateLimitRequest,
  hits: number,
): readonly LimitedDescriptor[] {
  const now = decisions.nowSeconds();
  return findRequestLimits(decisions, request).flatMap((limit) => {
    if (limit?.kind !== 'limited') return [];
    const hit = createHit(decisions, request.domain, limit, hits, now);
    return [{ limit, hit, stats: decisions.stats.getRule(request.domain, limit) }];
  });
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

function isRefused(
  { decisions: { options } }: ReservationContext,
  limited: readonly LimitedDescriptor[],
  results: readonly HitResult[],
): boolean {
  const statuses = limited.map(({ limit }, i) => ({
    code: results[i]?.over === true && !limit.shadowMode ? Code.OVER_LIMIT : Code.OK,
    quota: options.quotaMode || limit.quotaMode,
  }));
  return !options.shadowMode && getOverallCode(statuses) === Code.OVER_LIMIT;
}

function refuse(
  { decisions }: ReservationContext,
  { domain }: RateLimitRequest,
  {
    limited,
    results,
  }: { readonly limited: readonly LimitedDescriptor[]; readonly results: readonly HitResult[] },
): Reserved {
  decisions.activity?.record(domain, limited, { results, code: Code.OVER_LIMIT });
  const waits = limited.map(({ hit }, i) =>
    results[i]?.over === true ? (results[i].resetSeconds ?? hit.secondsLeft) : 0,
  );
  return { ok: false, retryAfterSeconds: Math.max(1, ...waits) };
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

function encode({ signingKey }: ReservationContext, reservation: Reservation): string {
  const content = Buffer.from(JSON.stringify(reservation)).toString('base64url');
  return `${content}.${sign(signingKey, content).toString('base64url')}`;
}

/** @throws AppError `reservation_invalid`, `reservations_need_token`. */
function decode({ signingKey }: ReservationContext, id: string): Reservation {
  if (signingKey === '') throw errors.reservations_need_token();
  const [content = '', signature = ''] = id.split('.');
  const expected = sign(signingKey, content);
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw errors.reservation_invalid();
  // Parsed boundary: signed by a replica.
  return JSON.parse(Buffer.from(content, 'base64url').toString()) as Reservation;
}

function sign(signingKey: string, content: string): Buffer {
  return createHmac('sha256', `tollgate reservation ${signingKey}`).update(content).digest();
}
