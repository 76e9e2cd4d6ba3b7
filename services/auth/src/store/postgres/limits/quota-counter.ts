import type { Quota } from '../../../domain/quota.ts';
import type { QuotaAnswer, QuotaCounter } from '../../../ports/quota-counter.ts';
import { type Queryable, query } from '../query.ts';

// The insert makes room for a key that nobody has asked for; of statements for one key the second waits for the first.
// Nothing is answered, and nothing counted, where the limit is reached.
const window = `
  insert into rate_limits as l (limiter, key, used, since) values ($1, $2, 1, $3)
  on conflict (limiter, key) do update
    set used = case when l.since = excluded.since then l.used + 1 else 1 end, since = excluded.since
    where l.since <> excluded.since or l.used + 1 <= $4::float8
  returning used`;

// Events that have not been refilled yet leave one by one, each after so many milliseconds.
const left = `greatest(0, l.used - extract(epoch from excluded.since - l.since) * 1000 / $5::float8)`;
const bucket = `
  insert into rate_limits as l (limiter, key, used, since) values ($1, $2, 1, $3)
  on conflict (limiter, key) do update
    set used = ${left} + 1, since = excluded.since
    where ${left} + 1 <= $4::float8
  returning used`;

/** {@link QuotaCounter} over PostgreSQL: one statement an event. */
export function quotaCounter(sql: Queryable): QuotaCounter {
  return {
    async take({ limiter, key, quota }, nowMs) {
      const size = quota.kind === 'window' ? quota.events : quota.size;
      // The insert of a first event asks nobody.
      if (size < 1) return refuse(quota, nowMs);
      const counted =
        quota.kind === 'window'
          ? await query(sql, window, [limiter, key, new Date(windowStart(quota, nowMs)), size])
          : await query(sql, bucket, [limiter, key, new Date(nowMs), size, quota.refillEveryMs]);
      return counted.length > 0 ? { allowed: true } : refuse(quota, nowMs);
    },
  };
}

function windowStart({ periodMs }: Extract<Quota, { kind: 'window' }>, nowMs: number): number {
  return Math.floor(nowMs / periodMs) * periodMs;
}

function refuse(quota: Quota, nowMs: number): QuotaAnswer {
  const retryAfterMs =
    quota.kind === 'window' ? windowStart(quota, nowMs) + quota.periodMs - nowMs : quota.refillEveryMs;
  return { allowed: false, retryAfterMs };
}
