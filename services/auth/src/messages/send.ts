import type { NotificationKind } from '../config/mail.ts';
import type { Context } from '../context.ts';
import { type AuditEntry, auditEntry } from '../db/audit-log.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type CodeChallenge, createStartFlow, type FlowMethod, flowOf } from '../sign-in/pkce.ts';
import type { Contact } from '../sign-up/input.ts';
import type { User } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import { type LinkKind, linkTraits } from './links.ts';
import { createSendPhoneCode, type PhoneCodeKind } from './phone-codes.ts';
import { createTakeTurn, type Quota, type SendingPurpose, secondsUntilNext } from './quotas.ts';
import { createSendLink } from './send-link.ts';
import type { SmsChannel } from './sms.ts';

/**
 * Costs what sending something to the contact costs, for a contact that nothing is to be sent to.
 *
 * @throws AppError `unexpected_failure` when the mail server would not take a mail; where answers are uniform, the limits of sending.
 */
type PretendToSend = (
  contact: Contact,
  /** What the audit log is to say of it; completes "Error sending … email". */
  more: {
    readonly audit: AuditEntry | undefined;
    readonly name: string;
    /** Runs after the answer, with the quota checked already. */
    readonly afterAnswer?: boolean | undefined;
  },
  metadata: RequestMetadata,
) => Promise<void>;

/** What the audit log would say, had anything been changed. */
const nobody = { id: '', email: '', phone: '', isSsoUser: false, userMetadata: {} };

/**
 * Creates {@link PretendToSend}: the same statements, which find nobody. They do not use up the quota of what is sent, unless answers
 * are to be uniform: then the quota refuses those who exist and those who do not alike.
 */
function createPretendToSend({ store, random, mailer, settings }: Context): PretendToSend {
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

  async function writeNothing(audit: AuditEntry | undefined, metadata: RequestMetadata): Promise<void> {
    if (audit !== undefined) return store.audit.append(audit);
    const at = new Date(metadata.nowMs);
    await store.oneTimeTokens.replace(
      [{ userId: random.uuid(), type: 'recovery_token', hash: random.uuid(), relatesTo: '', at }],
      auditEntry(nobody, 'user_recovery_requested', { metadata }),
    );
  }

  return async ({ kind }, { audit, name, afterAnswer }, metadata) => {
    const { limiter, quota, counts } = quotas[kind];
    // Nothing that is not sent is more than what is.
    if (counts && !afterAnswer && !(await takeQuota(kind, limiter, quota, metadata.nowMs))) return;
    await writeNothing(audit, metadata);
    // Where answers are uniform, mails leave after the answer; what else runs after it is to be as much work for everyone.
    if (kind === 'email' && (afterAnswer || !settings.uniformAnswers)) await sendNothing(name);
  };
}

/** What somebody asked to be sent. */
interface Sending {
  /** Of the request: a user's contact, where there is such a user. */
  readonly contact: Contact;
  readonly purpose: SendingPurpose;
  /** Where a mail leads in the end. */
  readonly redirectTo: string;
  /** Asks that the link in a mail answers a code. */
  readonly challenge?: CodeChallenge | undefined;
  readonly channel?: SmsChannel | undefined;
  /** What would be sent, if it turns out to be for nobody. */
  readonly instead: SendingKind;
  /** What the audit log is to say then. */
  readonly refusal?: AuditEntry | undefined;
  /** Whether the spacing of the contact and the quota of mails have been asked; it then runs after the answer. */
  readonly afterAnswer?: boolean | undefined;
}

/** What a user gets; the code for a change of phone counts as `change`. */
export type SendingKind = 'confirmation' | 'recovery' | 'magiclink' | 'change';

/** Whom it is for: a user and what they are to get, or nobody, when there is nothing to send. */
type Recipient = { readonly user: User; readonly kind: SendingKind } | undefined;

/** What became of it: nothing is sent to nobody. */
interface Sent {
  readonly sent: boolean;
  /** The SMS gateway's id of the message. */
  readonly messageId?: string;
}

/**
 * Sends a link or a code, or does for nobody what that would cost, so that neither the answer nor the work tells who exists. With
 * `SVC_SECURITY_UNIFORM_ANSWERS` limits do not tell either: they then count requests for a contact, not messages to a user.
 *
 * @throws AppError as `SendLink` and `SendPhoneCode`.
 */
export type SendToContact = (
  sending: Sending,
  recipient: Recipient,
  metadata: RequestMetadata,
) => Promise<Sent>;

/** What the kinds are called where mails, text messages and flows are made. */
const kinds = {
  confirmation: { link: 'confirmation', code: 'confirmation', flow: 'email/signup' },
  recovery: { link: 'recovery', code: 'confirmation', flow: 'recovery' },
  magiclink: { link: 'magiclink', code: 'confirmation', flow: 'magiclink' },
  change: { link: 'email_change', code: 'phone_change', flow: 'email_change' },
} as const satisfies Readonly<
  Record<SendingKind, { readonly link: LinkKind; readonly code: PhoneCodeKind; readonly flow: FlowMethod }>
>;

/** Creates {@link SendToContact}. */
export function createSendToContact(deps: Context): SendToContact {
  const { settings } = deps;
  const sendLink = createSendLink(deps);
  const sendPhoneCode = createSendPhoneCode(deps);
  const pretendToSend = createPretendToSend(deps);
  const startFlow = createStartFlow(deps);
  const takeTurn = createTakeTurn(deps);

  /** Has the user just had one? Where answers are uniform, that is nobody's business. */
  function isTooSoon(contact: Contact, { user, kind }: NonNullable<Recipient>, nowMs: number): boolean {
    if (contact.kind === 'phone') {
      const sentAt = kind === 'change' ? user.phoneChangeSentAt : user.confirmationSentAt;
      return secondsUntilNext(sentAt, settings.smsMaxFrequencyMs, nowMs) > 0;
    }
    const { sentAt, spacingMs } = linkTraits[kinds[kind].link];
    return secondsUntilNext(sentAt?.(user), settings.smtpMaxFrequencyMs ?? spacingMs, nowMs) > 0;
  }

  async function send(
    { contact, redirectTo, challenge, channel = 'sms', afterAnswer }: Sending,
    { user, kind }: NonNullable<Recipient>,
    metadata: RequestMetadata,
  ): Promise<{ readonly messageId?: string }> {
    const { link, code } = kinds[kind];
    if (contact.kind === 'phone') {
      const phone = kind === 'change' ? user.newPhone : contact.phone;
      return sendPhoneCode(user, { kind: code, phone, channel }, metadata);
    }
    const quotaTaken = afterAnswer;
    await sendLink(user, { kind: link, redirectTo, flow: flowOf(challenge), quotaTaken }, metadata);
    return {};
  }

  /** After the link: a request that is refused must not get its challenge in the place of that which the user has a link for. */
  async function beginFlow(
    challenge: CodeChallenge | undefined,
    { userId, kind }: { readonly userId: string | undefined; readonly kind: SendingKind },
    metadata: RequestMetadata,
  ): Promise<void> {
    if (challenge === undefined) return;
    await startFlow({ ...challenge, userId, authenticationMethod: kinds[kind].flow }, metadata);
  }

  return async (sending, asked, metadata) => {
    const { contact, purpose, challenge, instead, refusal: audit, afterAnswer } = sending;
    const kind = asked?.kind ?? instead;
    if (settings.uniformAnswers && !afterAnswer) await takeTurn(contact, purpose, metadata);
    const isSilent = settings.uniformAnswers && asked && isTooSoon(contact, asked, metadata.nowMs);
    const recipient = isSilent ? undefined : asked;
    if (recipient === undefined) {
      const { name } = linkTraits[kinds[kind].link];
      await pretendToSend(contact, { audit, name, afterAnswer }, metadata);
      await beginFlow(challenge, { userId: undefined, kind }, metadata);
      return { sent: false };
    }
    const { messageId } = await send(sending, recipient, metadata);
    await beginFlow(challenge, { userId: recipient.user.id, kind }, metadata);
    // An id is something that only those get who exist.
    if (messageId === undefined || settings.uniformAnswers) return { sent: true };
    return { sent: true, messageId };
  };
}

/**
 * Tells a user by mail what has changed, if the settings want such mails and the user has an email. Nobody waits for it. It is in no
 * quota: whoever takes over an account must not be able to use that up first.
 *
 * `to` is another address than the user's: the old one, when the email has changed.
 */
export type Notify = (
  user: Pick<User, 'email'>,
  kind: NotificationKind,
  variables?: JsonObject,
  to?: string,
) => void;

/** Creates {@link Notify}. */
export function createNotify({ mailer, background, settings }: Context): Notify {
  return (user, kind, variables = {}, to = user.email) => {
    if (!settings[`mailNotification:${kind}`] || to === '') return;
    background.run('notification mail', () =>
      mailer.send({
        kind,
        to,
        variables: { SiteURL: settings.siteUrl, Email: user.email, SendingTo: to, ...variables },
      }),
    );
  };
}
