import { type Millis, parseDuration } from '@tollgate/kit/time';
import type { Context } from '../context.ts';
import { type Queryable, query } from '../db/query.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Metrics } from '../metrics.ts';
import type { Contact } from '../sign-up/input.ts';
import { linkTraits } from './links.ts';

/** How many events may happen: so many in each period of the clock, or as many as a bucket holds that refills one by one. */
export type Quota =
  | { readonly kind: 'window'; readonly events: number; readonly periodMs: Millis }
  | { readonly kind: 'bucket'; readonly size: number; readonly refillEveryMs: Millis };

const hourMs = 3_600_000;

/**
 * Reads `N` (N events in each hour of the clock) or `N/duration` (a bucket of N to which one is added after each duration).
 * Answers undefined when the text has neither form.
 */
export function parseQuota(text: string): Quota | undefined {
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return windowQuota(Number(text), hourMs);
  const [, number = '', period = ''] = /^(\d{1,9})\/(\S+)$/.exec(text) ?? [];
  if (number === '') return undefined;
  const events = Number(number);
  const refillEveryMs = parseDuration(period);
  if (refillEveryMs === undefined || refillEveryMs <= 0) return undefined;
  return { kind: 'bucket', size: events, refillEveryMs };
}

/** Fewer than one event in a period is one in several. */
function windowQuota(events: number, periodMs: Millis): Quota {
  const isFraction = events > 0 && events < 1;
  return isFraction
    ? { kind: 'window', events: 1, periodMs: periodMs / events }
    : { kind: 'window', events, periodMs };
}

/** A bucket of `events` that refills whole within `periodMs`; of fewer than one event, one that refills more slowly. */
export function bucketQuota(events: number, periodMs: Millis): Quota {
  const size = events > 0 ? Math.max(events, 1) : 0;
  return { kind: 'bucket', size, refillEveryMs: events > 0 ? periodMs / events : periodMs };
}

/** Whole seconds until something may be sent again; 0 when it may now. */
export function secondsUntilNext(sentAt: Date | undefined, spacingMs: number, nowMs: number): number {
  if (sentAt === undefined) return 0;
  return Math.max(0, Math.ceil((sentAt.getTime() + spacingMs - nowMs) / 1000));
}

/** What the caller is told until then. */
export function spacingMessage(seconds: number): string {
  return `For security purposes, you can only request this after ${seconds} seconds.`;
}

/** May it happen, and if not, when is it worth another try, at the latest? */
type QuotaAnswer = { readonly allowed: true } | { readonly allowed: false; readonly retryAfterMs: Millis };

/** Counts events against quotas, for all replicas together. */
export interface QuotaCounter {
  /**
   * Counts one event, unless the quota of this limiter and key is used up. `limiter` is a constant of the program, `key` names
   * whom it is for (an address, or nothing for all).
   */
  take(
    of: { readonly limiter: string; readonly key: string; readonly quota: Quota },
    nowMs: number,
  ): Promise<QuotaAnswer>;
}

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
export function quotaCounter(sql: Queryable, metrics: Metrics): QuotaCounter {
  return {
    async take({ limiter, key, quota }, nowMs) {
      const size = quota.kind === 'window' ? quota.events : quota.size;
      // The insert of a first event asks nobody.
      const counted =
        size < 1
          ? []
          : quota.kind === 'window'
            ? await query(sql, window, [limiter, key, new Date(windowStart(quota, nowMs)), size])
            : await query(sql, bucket, [limiter, key, new Date(nowMs), size, quota.refillEveryMs]);
      if (counted.length > 0) return { allowed: true };
      if (limiter === 'email_sent') metrics.refusedEmails.inc();
      return refuse(quota, nowMs);
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

/**
 * Counts a mail against the quota of all users together. Not asked where users need not confirm: what is sent then is not sent to
 * strangers.
 *
 * @throws AppError `over_email_send_rate_limit`.
 */
export async function takeMailQuota({ store, settings }: Context, nowMs: number): Promise<void> {
  if (settings.mailerAutoconfirm) return;
  const answer = await store.quotas.take(
    { limiter: 'email_sent', key: '', quota: settings.rateLimitEmailSent },
    nowMs,
  );
  if (!answer.allowed)
    throw new RetryLaterError(errors.over_email_send_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
}

/** What is asked for: each has a spacing of its own, and what a sign-up and a sign-in send are different things. */
export type SendingPurpose = 'confirmation' | 'sign_in' | 'change';

/**
 * Lets one request for a contact pass in the time in which a user gets one message, whether or not there is such a user.
 *
 * @throws AppError `over_email_send_rate_limit` or `over_sms_send_rate_limit`.
 */
export type TakeTurn = (
  contact: Contact,
  purpose: SendingPurpose,
  metadata: RequestMetadata,
) => Promise<void>;

/** Creates {@link TakeTurn}. */
export function createTakeTurn({ store, settings }: Context): TakeTurn {
  function spacingMs(kind: Contact['kind'], purpose: SendingPurpose): Millis {
    if (kind === 'phone') return settings.smsMaxFrequencyMs;
    const traits = linkTraits[purpose === 'confirmation' ? 'confirmation' : 'magiclink'];
    return settings.smtpMaxFrequencyMs ?? traits.spacingMs;
  }

  return async (contact, purpose, { nowMs }) => {
    const refillEveryMs = spacingMs(contact.kind, purpose);
    if (refillEveryMs <= 0) return;
    const key = contact.kind === 'email' ? contact.email : contact.phone;
    const quota = { kind: 'bucket', size: 1, refillEveryMs } as const;
    const answer = await store.quotas.take({ limiter: `contact_${purpose}`, key, quota }, nowMs);
    if (answer.allowed) return;
    const seconds = Math.ceil(answer.retryAfterMs / 1000);
    const told = { message: spacingMessage(seconds) };
    const error =
      contact.kind === 'email'
        ? errors.over_email_send_rate_limit(told)
        : errors.over_sms_send_rate_limit(told);
    throw new RetryLaterError(error, seconds);
  };
}
