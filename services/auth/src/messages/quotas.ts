import type { AppError } from '@tollgate/kit/errors';
import { type Millis, parseDuration } from '@tollgate/kit/time';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { type Queryable, query } from '../db/connection.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Metrics } from '../metrics.ts';
import { type Contact, getAddress } from '../users/user.ts';
import { linkDefinitions } from './links.ts';

/** Limit of events: a fixed window aligned to the clock, or a leaky bucket. */
export type Quota =
  | { readonly kind: 'window'; readonly events: number; readonly periodMs: Millis }
  | { readonly kind: 'bucket'; readonly size: number; readonly refillEveryMs: Millis };

const hourMs = 3_600_000;

/**
 * Parses `N` (N events per hour of the clock) or `N/duration` (a bucket of N, refilled with one
 * event per duration); undefined for any other text.
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

/** Fewer than one event per period is one event per several periods. */
function windowQuota(events: number, periodMs: Millis): Quota {
  const isFraction = events > 0 && events < 1;
  return isFraction
    ? { kind: 'window', events: 1, periodMs: periodMs / events }
    : { kind: 'window', events, periodMs };
}

/**
 * A bucket of `events` that refills completely within `periodMs`. Fewer than one event is one,
 * refilled more slowly.
 */
export function bucketQuota(events: number, periodMs: Millis): Extract<Quota, { kind: 'bucket' }> {
  const size = events > 0 ? Math.max(events, 1) : 0;
  return { kind: 'bucket', size, refillEveryMs: events > 0 ? periodMs / events : periodMs };
}

/** Whole seconds until the next message may be sent; 0 if it may be sent now. */
export function secondsUntilNext(sentAt: Date | undefined, spacingMs: number, nowMs: number): number {
  if (sentAt === undefined) return 0;
  return Math.max(0, Math.ceil((sentAt.getTime() + spacingMs - nowMs) / 1000));
}

/** The error of a message too soon after the last one. Clients of GoTrue parse its text. */
export function tooSoon(kind: Contact['kind'], seconds: number): RetryLaterError {
  const message = `For security purposes, you can only request this after ${seconds} seconds.`;
  return new RetryLaterError(sendLimitErrors[kind]({ message }), seconds);
}

const sendLimitErrors = {
  email: errors.over_email_send_rate_limit,
  phone: errors.over_sms_send_rate_limit,
} as const;

/** `retryAfterMs` is an upper bound. */
type QuotaResult = { readonly allowed: true } | { readonly allowed: false; readonly retryAfterMs: Millis };

/** An event that counts against a quota. */
interface QuotaEvent {
  /** A constant of the program. */
  readonly limiter: string;
  /** An address or id; empty for a limit that all share. */
  readonly key: string;
  readonly quota: Quota;
}

// Concurrent statements for one key wait for each other, also for a new key: they conflict on the
// primary key. Nothing is returned, and nothing counted, if the limit is reached.
const window = `
  insert into rate_limits as l (limiter, key, used, since) values ($1, $2, 1, $3)
  on conflict (limiter, key) do update
    set used = case when l.since = excluded.since then l.used + 1 else 1 end, since = excluded.since
    where l.since <> excluded.since or l.used + 1 <= $4::float8
  returning used`;

const left = `greatest(0, l.used - extract(epoch from excluded.since - l.since) * 1000 / $5::float8)`;
const bucket = `
  insert into rate_limits as l (limiter, key, used, since) values ($1, $2, 1, $3)
  on conflict (limiter, key) do update
    set used = ${left} + 1, since = excluded.since
    where ${left} + 1 <= $4::float8
  returning used`;

const giveBack = 'update rate_limits set used = greatest(0, used - 1) where limiter = $1 and key = $2';

/** An unlogged row, so that no file is synchronized. */
const probeWrite = `
  insert into rate_limits as l (limiter, key, used, since) values ('ready', '', 0, $1)
  on conflict (limiter, key) do update set since = excluded.since`;

/** Counts events against quotas that all replicas share. */
export class QuotaStore {
  readonly #sql: Queryable;
  readonly #metrics: Metrics;

  constructor(sql: Queryable, metrics: Metrics) {
    this.#sql = sql;
    this.#metrics = metrics;
  }

  /** Counts one event, unless the quota is used up. */
  async take(event: QuotaEvent, nowMs: number): Promise<QuotaResult> {
    if (await this.#count(event, nowMs)) return { allowed: true };
    if (event.limiter === 'email_sent') this.#metrics.refusedEmails.inc();
    const { quota } = event;
    const retryAfterMs =
      quota.kind === 'window' ? windowStart(quota, nowMs) + quota.periodMs - nowMs : quota.refillEveryMs;
    return { allowed: false, retryAfterMs };
  }

  /** Takes back the last event, which did not happen after all. */
  async giveBack({ limiter, key }: Pick<QuotaEvent, 'limiter' | 'key'>): Promise<void> {
    await query(this.#sql, giveBack, [limiter, key]);
  }

  /** Rejects if the database accepts no writes. */
  async probeWrite(nowMs: number): Promise<void> {
    await query(this.#sql, probeWrite, [new Date(nowMs)]);
  }

  async #count({ limiter, key, quota }: QuotaEvent, nowMs: number): Promise<boolean> {
    const size = quota.kind === 'window' ? quota.events : quota.size;
    // The statements check the limit on conflict only, not for the first event of a key.
    if (size < 1) return false;
    const rows =
      quota.kind === 'window'
        ? await query(this.#sql, window, [limiter, key, new Date(windowStart(quota, nowMs)), size])
        : await query(this.#sql, bucket, [limiter, key, new Date(nowMs), size, quota.refillEveryMs]);
    return rows.length > 0;
  }
}

function windowStart({ periodMs }: Extract<Quota, { kind: 'window' }>, nowMs: number): number {
  return Math.floor(nowMs / periodMs) * periodMs;
}

/** Counts an event. @throws RetryLaterError with `error` if the quota is used up. */
export async function enforceQuota(
  { store }: Pick<Context, 'store'>,
  { nowMs, error, ...event }: QuotaEvent & { readonly nowMs: number; readonly error: () => AppError },
): Promise<void> {
  const result = await store.quotas.take(event, nowMs);
  if (!result.allowed) throw new RetryLaterError(error(), Math.ceil(result.retryAfterMs / 1000));
}

/**
 * Counts a message against the quota that all users share, unless users need no confirmation: then
 * unauthenticated callers cannot send messages to arbitrary contacts, and a limit must not block
 * sign-ups.
 *
 * @throws AppError `over_email_send_rate_limit` or `over_sms_send_rate_limit`
 */
export async function enforceMessageQuota(
  context: Context,
  kind: Contact['kind'],
  nowMs: number,
): Promise<void> {
  const shared = getSharedQuota(context.settings, kind);
  if (shared !== undefined) await enforceQuota(context, { ...shared, nowMs, error: sendLimitErrors[kind] });
}

/**
 * Counts a text message to a phone that any user may enter, also with SMS_AUTOCONFIRM.
 *
 * @throws AppError `over_sms_send_rate_limit`
 */
export async function enforceSmsQuota(context: Context, nowMs: number): Promise<void> {
  await enforceQuota(context, { ...smsQuota(context.settings), nowMs, error: sendLimitErrors.phone });
}

/**
 * Counts a message that is only simulated. With uniform answers it counts against the quota of all
 * messages, which then refuses requests for known and unknown contacts alike. Returns whether the
 * message would be sent.
 *
 * @throws AppError as `enforceMessageQuota`, with uniform answers only
 */
export async function takeSimulatedQuota(
  context: Context,
  kind: Contact['kind'],
  nowMs: number,
): Promise<boolean> {
  const { store, settings } = context;
  const shared = getSharedQuota(settings, kind);
  if (shared === undefined) return true;
  if (!settings.uniformAnswers)
    return (await store.quotas.take({ ...shared, limiter: `${shared.limiter}_to_nobody` }, nowMs)).allowed;
  await enforceMessageQuota(context, kind, nowMs);
  return true;
}

function getSharedQuota(settings: Settings, kind: Contact['kind']): QuotaEvent | undefined {
  if (kind === 'email')
    return settings.mailerAutoconfirm
      ? undefined
      : { limiter: 'email_sent', key: '', quota: settings.rateLimitEmailSent };
  return settings.smsAutoconfirm ? undefined : smsQuota(settings);
}

function smsQuota({ rateLimitSmsSent: quota }: Settings): QuotaEvent {
  return { limiter: 'sms_sent', key: '', quota };
}

/** Each purpose has its own spacing. */
export type SendingPurpose = 'confirmation' | 'sign_in' | 'change';

/**
 * Limits requests per contact as messages to a user are limited, whether or not there is a user.
 *
 * @throws AppError `over_email_send_rate_limit` or `over_sms_send_rate_limit`
 */
export async function enforceContactSpacing(
  { store, settings }: Context,
  { contact, purpose }: { readonly contact: Contact; readonly purpose: SendingPurpose },
  { nowMs }: RequestMetadata,
): Promise<void> {
  const refillEveryMs = getSpacing(settings, contact, purpose);
  if (refillEveryMs <= 0) return;
  const key = getAddress(contact);
  const quota = { kind: 'bucket', size: 1, refillEveryMs } as const;
  const result = await store.quotas.take({ limiter: `contact_${purpose}`, key, quota }, nowMs);
  if (!result.allowed) throw tooSoon(contact.kind, Math.ceil(result.retryAfterMs / 1000));
}

function getSpacing(settings: Settings, { kind }: Contact, purpose: SendingPurpose): Millis {
  if (kind === 'phone') return settings.smsMaxFrequencyMs;
  const link = linkDefinitions[purpose === 'confirmation' ? 'confirmation' : 'magiclink'];
  return settings.smtpMaxFrequencyMs ?? link.spacingMs;
}
