import type { Millis } from '@tollgate/kit/duration';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { spacingMessage } from '../../domain/spacing.ts';
import { errors, RetryLaterError } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import type { Contact } from '../contact/read-contact.ts';
import { linkTraits } from '../links/link.ts';

/** What is asked for: each has a spacing of its own, and what a sign-up and a sign-in send are different things. */
export type SendingPurpose = 'confirmation' | 'sign_in' | 'change';

/**
 * Lets one request for a contact pass in the time in which a user gets one message, whether or not there is such a user.
 *
 * @throws AppError `over_email_send_rate_limit` or `over_sms_send_rate_limit`.
 */
export type TakeTurn = (contact: Contact, purpose: SendingPurpose, facts: RequestFacts) => Promise<void>;

/** What that takes. */
export type TakeTurnDeps = DepsWith<'store', 'smtpMaxFrequencyMs' | 'smsMaxFrequencyMs'>;

/** Creates {@link TakeTurn}. */
export function createTakeTurn({ store, settings }: TakeTurnDeps): TakeTurn {
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
