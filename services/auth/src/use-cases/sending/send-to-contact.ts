import type { AuditEntry } from '../../domain/audit-entry.ts';
import { type CodeChallenge, flowOf } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { secondsUntilNext } from '../../domain/spacing.ts';
import type { User } from '../../domain/user.ts';
import type { FlowMethod } from '../../ports/flow-store.ts';
import type { SmsChannel } from '../../ports/sms-gateway.ts';
import type { DepsWith } from '../../services.ts';
import type { Contact } from '../contact/read-contact.ts';
import { type LinkKind, linkTraits } from '../links/link.ts';
import { createSendLink, type SendLinkDeps } from '../links/send-link.ts';
import { createSendPhoneCode, type PhoneCodeDeps, type PhoneCodeKind } from '../phone/send-phone-code.ts';
import { createStartFlow } from '../pkce/start-flow.ts';
import { createTakeTurn, type SendingPurpose, type TakeTurnDeps } from './contact-spacing.ts';
import { createPretendToSend, type PretendDeps } from './pretend-to-send.ts';

/** What somebody asked to be sent. */
export interface Sending {
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
export type Recipient = { readonly user: User; readonly kind: SendingKind } | undefined;

/** What became of it: nothing is sent to nobody. */
export interface Sent {
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
export type SendToContact = (sending: Sending, recipient: Recipient, facts: RequestFacts) => Promise<Sent>;

/** What that takes. */
export type SendToContactDeps = SendLinkDeps &
  PhoneCodeDeps &
  PretendDeps &
  TakeTurnDeps &
  DepsWith<'store' | 'random', 'uniformAnswers'>;

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
export function createSendToContact(deps: SendToContactDeps): SendToContact {
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
    facts: RequestFacts,
  ): Promise<{ readonly messageId?: string }> {
    const { link, code } = kinds[kind];
    if (contact.kind === 'phone') {
      const phone = kind === 'change' ? user.newPhone : contact.phone;
      return sendPhoneCode(user, { kind: code, phone, channel }, facts);
    }
    const quotaTaken = afterAnswer;
    await sendLink(user, { kind: link, redirectTo, flow: flowOf(challenge), quotaTaken }, facts);
    return {};
  }

  /** After the link: a request that is refused must not get its challenge in the place of that which the user has a link for. */
  async function beginFlow(
    challenge: CodeChallenge | undefined,
    { userId, kind }: { readonly userId: string | undefined; readonly kind: SendingKind },
    facts: RequestFacts,
  ): Promise<void> {
    if (challenge === undefined) return;
    await startFlow({ ...challenge, userId, authenticationMethod: kinds[kind].flow }, facts);
  }

  return async (sending, asked, facts) => {
    const { contact, purpose, challenge, instead, refusal: audit, afterAnswer } = sending;
    const kind = asked?.kind ?? instead;
    if (settings.uniformAnswers && !afterAnswer) await takeTurn(contact, purpose, facts);
    const isSilent = settings.uniformAnswers && asked && isTooSoon(contact, asked, facts.nowMs);
    const recipient = isSilent ? undefined : asked;
    if (recipient === undefined) {
      const { name } = linkTraits[kinds[kind].link];
      await pretendToSend(contact, { audit, name, afterAnswer }, facts);
      await beginFlow(challenge, { userId: undefined, kind }, facts);
      return { sent: false };
    }
    const { messageId } = await send(sending, recipient, facts);
    await beginFlow(challenge, { userId: recipient.user.id, kind }, facts);
    // An id is something that only those get who exist.
    if (messageId === undefined || settings.uniformAnswers) return { sent: true };
    return { sent: true, messageId };
  };
}
