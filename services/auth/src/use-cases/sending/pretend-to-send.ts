import { type AuditEntry, auditEntry } from '../../domain/audit-entry.ts';
import type { Quota } from '../../domain/quota.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors, RetryLaterError } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import type { Contact } from '../contact/read-contact.ts';

/**
 * Costs what sending something to the contact costs, for a contact that nothing is to be sent to.
 *
 * @throws AppError `unexpected_failure` when the mail server would not take a mail; where answers are uniform, the limits of sending.
 */
export type PretendToSend = (
  contact: Contact,
  /** What the audit log is to say of it; completes "Error sending … email". */
  more: {
    readonly audit: AuditEntry | undefined;
    readonly name: string;
    /** Runs after the answer, with the quota checked already. */
    readonly afterAnswer?: boolean | undefined;
  },
  facts: RequestFacts,
) => Promise<void>;

/** What that takes. */
export type PretendDeps = DepsWith<
  'store' | 'random' | 'mailer',
  'uniformAnswers' | 'mailerAutoconfirm' | 'smsAutoconfirm' | 'rateLimitEmailSent' | 'rateLimitSmsSent'
>;

/** What the audit log would say, had anything been changed. */
const nobody = { id: '', email: '', phone: '', isSsoUser: false, userMetadata: {} };

/**
 * Creates {@link PretendToSend}: the same statements, which find nobody. They do not use up the quota of what is sent, unless answers
 * are to be uniform: then the quota refuses those who exist and those who do not alike.
 */
export function createPretendToSend({ store, random, mailer, settings }: PretendDeps): PretendToSend {
  const quotas = {
    email: { limiter: 'email_sent', quota: settings.rateLimitEmailSent, counts: !settings.mailerAutoconfirm },
    phone: { limiter: 'sms_sent', quota: settings.rateLimitSmsSent, counts: !settings.smsAutoconfirm },
  } as const;

  async function takeQuota(
    kind: Contact['kind'],
    limiter: string,
    quota: Quota,
    nowMs: number,
  ): Promise<boolean> {
    const name = settings.uniformAnswers ? limiter : `${limiter}_to_nobody`;
    const answer = await store.quotas.take({ limiter: name, key: '', quota }, nowMs);
    if (answer.allowed || !settings.uniformAnswers) return answer.allowed;
    const error = kind === 'email' ? errors.over_email_send_rate_limit() : errors.over_sms_send_rate_limit();
    throw new RetryLaterError(error, Math.ceil(answer.retryAfterMs / 1000));
  }

  async function sendNothing(name: string): Promise<void> {
    try {
      await mailer.sendNothing();
    } catch (error) {
      throw errors.unexpected_failure({ message: `Error sending ${name} email`, cause: error });
    }
  }

  async function writeNothing(audit: AuditEntry | undefined, facts: RequestFacts): Promise<void> {
    if (audit !== undefined) return store.audit.append(audit);
    const at = new Date(facts.nowMs);
    await store.oneTimeTokens.replace(
      [{ userId: random.uuid(), type: 'recovery_token', hash: random.uuid(), relatesTo: '', at }],
      auditEntry(nobody, 'user_recovery_requested', { facts }),
    );
  }

  return async ({ kind }, { audit, name, afterAnswer }, facts) => {
    const { limiter, quota, counts } = quotas[kind];
    // Nothing that is not sent is more than what is.
    if (counts && !afterAnswer && !(await takeQuota(kind, limiter, quota, facts.nowMs))) return;
    await writeNothing(audit, facts);
    // Where answers are uniform, mails leave after the answer; what else runs after it is to be as much work for everyone.
    if (kind === 'email' && (afterAnswer || !settings.uniformAnswers)) await sendNothing(name);
  };
}
