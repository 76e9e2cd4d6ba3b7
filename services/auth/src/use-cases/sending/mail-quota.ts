import { errors, RetryLaterError } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';

/** What the quota of mails takes. */
export type MailQuotaDeps = DepsWith<'store', 'mailerAutoconfirm' | 'rateLimitEmailSent'>;

/**
 * Counts a mail against the quota of all users together. Not asked where users need not confirm: what is sent then is not sent to
 * strangers.
 *
 * @throws AppError `over_email_send_rate_limit`.
 */
export async function takeMailQuota({ store, settings }: MailQuotaDeps, nowMs: number): Promise<void> {
  if (settings.mailerAutoconfirm) return;
  const answer = await store.quotas.take(
    { limiter: 'email_sent', key: '', quota: settings.rateLimitEmailSent },
    nowMs,
  );
  if (!answer.allowed)
    throw new RetryLaterError(errors.over_email_send_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
}
