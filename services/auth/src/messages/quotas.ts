import type { Millis } from '@tollgate/kit/time';
import type { Settings } from '../config/settings.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type Contact, getAddress } from '../users/user.ts';
import type { MessagesContext } from './context.ts';
import { linkDefinitions } from './link-definitions.ts';

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

/**
 * Counts a message against the quota that all users share, unless users need no confirmation: then
 * unauthenticated callers cannot send messages to arbitrary contacts, and a limit must not block
 * sign-ups.
 *
 * @throws AppError `over_email_send_rate_limit` or `over_sms_send_rate_limit`
 */
export async function enforceMessageQuota(
  { limiter, settings }: MessagesContext,
  kind: Contact['kind'],
  nowMs: number,
): Promise<void> {
  const shared = getSharedLimit(settings, kind);
  if (shared !== undefined) await limiter.enforce(shared, { key: '', nowMs, error: sendLimitErrors[kind] });
}

/**
 * Counts a text message to a phone that any user may enter, also with SMS_AUTOCONFIRM.
 *
 * @throws AppError `over_sms_send_rate_limit`
 */
export async function enforceSmsQuota({ limiter }: MessagesContext, nowMs: number): Promise<void> {
  await limiter.enforce('sms_sent', { key: '', nowMs, error: sendLimitErrors.phone });
}

/**
 * Counts a message that is only simulated. With uniform answers it counts against the quota of all
 * messages, which then refuses requests for known and unknown contacts alike. Returns whether the
 * message would be sent.
 *
 * @throws AppError as `enforceMessageQuota`, with uniform answers only
 */
export async function takeSimulatedQuota(
  context: MessagesContext,
  kind: Contact['kind'],
  nowMs: number,
): Promise<boolean> {
  const { limiter, settings } = context;
  const shared = getSharedLimit(settings, kind);
  if (shared === undefined) return true;
  if (!settings.uniformAnswers) return (await limiter.take(`${shared}_to_nobody`, '', nowMs)).allowed;
  await enforceMessageQuota(context, kind, nowMs);
  return true;
}

function getSharedLimit(settings: Settings, kind: Contact['kind']) {
  if (kind === 'email') return settings.mailerAutoconfirm ? undefined : 'email_sent';
  return settings.smsAutoconfirm ? undefined : 'sms_sent';
}

/** Each purpose has its own spacing. */
export type SendingPurpose = 'confirmation' | 'sign_in' | 'change';

/**
 * Limits requests per contact as messages to a user are limited, whether or not there is a user.
 *
 * @throws AppError `over_email_send_rate_limit` or `over_sms_send_rate_limit`
 */
export async function enforceContactSpacing(
  { limiter, settings }: MessagesContext,
  { contact, purpose }: { readonly contact: Contact; readonly purpose: SendingPurpose },
  { nowMs }: RequestMetadata,
): Promise<void> {
  const spacingMs = getSpacing(settings, contact, purpose);
  if (spacingMs <= 0) return;
  const key = getAddress(contact);
  const result = await limiter.takeSpaced(`contact_${purpose}`, { key, spacingMs }, nowMs);
  if (!result.allowed) throw tooSoon(contact.kind, Math.ceil(result.retryAfterMs / 1000));
}

function getSpacing(settings: Settings, { kind }: Contact, purpose: SendingPurpose): Millis {
  if (kind === 'phone') return settings.smsMaxFrequencyMs;
  const link = linkDefinitions[purpose === 'confirmation' ? 'confirmation' : 'magiclink'];
  return settings.smtpMaxFrequencyMs ?? link.spacingMs;
}
