import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditEntry } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { flowType, startFlow } from '../flows/pkce.ts';
import type { CodeChallenge, FlowMethod } from '../flows/store.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { userLanguages } from '../i18n/languages.ts';
import type { NotificationKind } from '../i18n/texts/mail-kinds.ts';
import { type Contact, getAddress, toUserJson, type User } from '../users/user.ts';
import type { MessagesContext } from './context.ts';
import { type LinkKind, linkDefinitions } from './link-definitions.ts';
import { sendLink } from './links.ts';
import { type PhoneCodeKind, sendPhoneCode } from './phone-codes.ts';
import {
  enforceContactSpacing,
  type SendingPurpose,
  secondsUntilNext,
  takeSimulatedQuota,
} from './quotas.ts';
import type { SmsChannel } from './sms-gateway.ts';
import { toMailType } from './smtp.ts';

/** Kinds of messages to a user; the code for a change of phone counts as `change`. */
export type SendingKind = 'confirmation' | 'recovery' | 'magiclink' | 'change';

const kinds = {
  confirmation: { link: 'confirmation', code: 'confirmation', flow: 'email/signup' },
  recovery: { link: 'recovery', code: 'confirmation', flow: 'recovery' },
  magiclink: { link: 'magiclink', code: 'confirmation', flow: 'magiclink' },
  change: { link: 'email_change', code: 'phone_change', flow: 'email_change' },
} as const satisfies Readonly<
  Record<SendingKind, { readonly link: LinkKind; readonly code: PhoneCodeKind; readonly flow: FlowMethod }>
>;

interface Recipient {
  readonly user: User;
  readonly kind: SendingKind;
}

/** A request to send a link or a code to a contact. */
interface Sending {
  readonly contact: Contact;
  readonly purpose: SendingPurpose;
  /** Absent: to `contact` itself. A change of email may be asked for by phone number. */
  readonly by?: Contact['kind'] | undefined;
  /** Absent if nothing is to be sent to this contact: the work is simulated then. */
  readonly recipient: Recipient | undefined;
  readonly simulated: {
    readonly kind: SendingKind;
    /** Written instead of the entry that sending writes. */
    readonly audit?: AuditEntry | undefined;
  };
  /** Result of `redirectTarget`. */
  readonly redirectTo: string;
  /** Starts a PKCE flow. */
  readonly challenge?: CodeChallenge | undefined;
  readonly channel?: SmsChannel | undefined;
  /**
   * Runs after the response; the spacing of the contact and the quota of mails are enforced
   * already.
   */
  readonly afterResponse?: boolean | undefined;
}

/**
 * Sends a link or a code to a contact. Without a recipient it does the same work, so that neither
 * the response nor its time allows user enumeration. With `SVC_SECURITY_UNIFORM_ANSWERS` limits do
 * not either: they count requests per contact, not messages per user.
 *
 * @throws AppError as `sendLink` and `sendPhoneCode`
 */
export async function sendToContact(
  context: MessagesContext,
  sending: Sending,
  metadata: RequestMetadata,
): Promise<{ readonly sent: boolean; readonly messageId?: string }> {
  const { uniformAnswers } = context.settings;
  const { contact, by = contact.kind, recipient, simulated } = sending;
  if (uniformAnswers && !sending.afterResponse) await enforceContactSpacing(context, sending, metadata);
  const isSilent = uniformAnswers && recipient && isTooSoon(context, by, recipient, metadata.nowMs);
  if (recipient === undefined || isSilent) {
    const kind = recipient?.kind ?? simulated.kind;
    await simulateSending(context, { ...sending, kind }, metadata);
    await startChallengedFlow(context, sending, { userId: undefined, kind }, metadata);
    return { sent: false };
  }
  const { messageId } = await send(context, { ...sending, ...recipient }, metadata);
  const { user, kind } = recipient;
  await startChallengedFlow(context, sending, { userId: user.id, kind }, metadata);
  // A message id would disclose that the user exists.
  return { sent: true, ...(messageId !== undefined && !uniformAnswers && { messageId }) };
}

function isTooSoon(
  { settings }: MessagesContext,
  by: Contact['kind'],
  { user, kind }: Recipient,
  nowMs: number,
): boolean {
  if (by === 'phone') {
    const sentAt = kind === 'change' ? user.phoneChangeSentAt : user.confirmationSentAt;
    return secondsUntilNext(sentAt, settings.smsMaxFrequencyMs, nowMs) > 0;
  }
  const { sentAt, spacingMs } = linkDefinitions[kinds[kind].link];
  return secondsUntilNext(sentAt?.(user), settings.smtpMaxFrequencyMs ?? spacingMs, nowMs) > 0;
}

async function send(
  context: MessagesContext,
  {
    contact,
    by = contact.kind,
    redirectTo,
    challenge,
    channel = 'sms',
    afterResponse,
    user,
    kind,
  }: Sending & Recipient,
  metadata: RequestMetadata,
): Promise<{ readonly messageId?: string }> {
  if (by === 'phone') {
    const phone = kind === 'change' ? user.newPhone : getAddress(contact);
    return sendPhoneCode(context, user, { kind: kinds[kind].code, phone, channel }, metadata);
  }
  const link = { redirectTo, flow: flowType(challenge), quotaTaken: afterResponse };
  await sendLink(context, user, { kind: kinds[kind].link, ...link }, metadata);
  return {};
}

/**
 * Runs after the link is sent: a request that is refused must not replace the challenge of the link
 * that the user has.
 */
async function startChallengedFlow(
  context: MessagesContext,
  { challenge }: Sending,
  { userId, kind }: { readonly userId: string | undefined; readonly kind: SendingKind },
  metadata: RequestMetadata,
): Promise<void> {
  if (challenge === undefined) return;
  await startFlow(context, { ...challenge, userId, authenticationMethod: kinds[kind].flow }, metadata);
}

/**
 * Does the work of sending without a recipient: the same statements, and the same conversation with
 * the mail server.
 *
 * @throws AppError `unexpected_failure` if the mail server would not accept a mail; with uniform
 * answers, the errors of quotas.
 */
async function simulateSending(
  context: MessagesContext,
  { contact, by = contact.kind, kind, simulated, afterResponse }: Sending & { readonly kind: SendingKind },
  metadata: RequestMetadata,
): Promise<void> {
  const { mailer, hooks, settings } = context;
  // Beyond the quota a message is not sent either.
  if (!afterResponse && !(await takeSimulatedQuota(context, by, metadata.nowMs))) return;
  await writeSimulated(context, simulated.audit, metadata);
  // Calls of a hook cannot be simulated. With uniform answers mails are sent after the response.
  if (by === 'phone' || hooks.enabled.has('SEND_EMAIL') || (settings.uniformAnswers && !afterResponse))
    return;
  try {
    await mailer.sendNothing();
  } catch (cause) {
    const { name } = linkDefinitions[kinds[kind].link];
    throw errors.unexpected_failure({ message: `Error sending ${name} email`, cause });
  }
}

const noActor = { kind: 'unauthenticated', id: '', email: '', phone: '', userMetadata: {} } as const;

/** Writes the audit entry, or runs the statement that stores a token, which finds no user. */
async function writeSimulated(
  { store, random }: MessagesContext,
  audit: AuditEntry | undefined,
  metadata: RequestMetadata,
): Promise<void> {
  if (audit !== undefined) return store.audit.append(audit);
  const at = new Date(metadata.nowMs);
  await store.oneTimeTokens.replace(
    [{ userId: random.uuid(), type: 'recovery_token', hash: random.uuid(), relatesTo: '', at }],
    auditEntry(noActor, 'user_recovery_requested', { metadata }),
  );
}

/**
 * Mails a user, in the background, that something has changed, if the settings enable this mail. No
 * quota applies: an attacker who takes over an account could use it up first.
 *
 * `to` differs from the user's address after a change of email, which is sent to the old one.
 */
export function notify(
  { mailer, background, hooks, settings }: MessagesContext,
  {
    user,
    kind,
    variables = {},
    to = user.email,
  }: {
    readonly user: User;
    readonly kind: NotificationKind;
    readonly variables?: JsonObject;
    readonly to?: string;
  },
  /** Request of the user, whose language applies to a user without locale. */
  metadata: Pick<RequestMetadata, 'acceptLanguage'> = {},
): void {
  if (!settings[`mailNotification:${kind}`] || to === '') return;
  background.run('notification mail', async () => {
    if (hooks.enabled.has('SEND_EMAIL')) {
      const payload = { user: toUserJson(user), email_data: toNotificationData(settings, kind, variables) };
      await hooks.call('SEND_EMAIL', payload, { clientAddress: '', requestId: '' });
      return;
    }
    await mailer.send({
      kind,
      to,
      languages: userLanguages(user, metadata),
      variables: { SiteURL: settings.siteUrl, Email: user.email, SendingTo: to, ...variables },
    });
  });
}

function toNotificationData(
  { apiExternalUrl }: Settings,
  kind: NotificationKind,
  { OldEmail = '', OldPhone = '', Provider = '', FactorType = '' }: JsonObject,
): JsonObject {
  return {
    token: '',
    token_hash: '',
    redirect_to: '',
    email_action_type: toMailType(kind),
    site_url: apiExternalUrl,
    token_new: '',
    token_hash_new: '',
    old_email: OldEmail,
    old_phone: OldPhone,
    provider: Provider,
    factor_type: FactorType,
  };
}
