import { type AppError, isAppError } from '@tollgate/kit/errors';
import type { AuditAction } from '../audit/actions.ts';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { userLanguages } from '../i18n/languages.ts';
import { hashOneTimeToken, otpDigits } from '../one-time-tokens/hash.ts';
import type { OneTimeToken } from '../one-time-tokens/store.ts';
import type { OneTimeTokenType } from '../users/token-columns.ts';
import { toUserJson, type User } from '../users/user.ts';
import type { MessagesContext } from './context.ts';
import { enforceMessageQuota, secondsUntilNext, tooSoon } from './quotas.ts';
import type { CodeMessage, SmsChannel, SmsGateway } from './sms-gateway.ts';

/** Fixed codes of phones that get no message: for app reviewers and tests. */
interface TestCodes {
  /** Codes by phone, with or without `+`. */
  readonly smsTestOtp: Readonly<Record<string, string>>;
  /** Absent for no expiry. */
  readonly smsTestOtpValidUntil: Date | undefined;
}

export function getTestCode(phone: string, codes: TestCodes, nowMs: number): string | undefined {
  const { smsTestOtp, smsTestOtpValidUntil } = codes;
  if (smsTestOtpValidUntil !== undefined && smsTestOtpValidUntil.getTime() <= nowMs) return undefined;
  return smsTestOtp[phone] ?? smsTestOtp[`+${phone}`];
}

export type PhoneCodeKind = 'confirmation' | 'recovery' | 'phone_change' | 'reauthentication';

interface CodeDefinition {
  readonly type: OneTimeTokenType;
  readonly action: AuditAction;
  readonly sentAt: (user: User) => Date | undefined;
}

const codeDefinitions: Readonly<Record<PhoneCodeKind, CodeDefinition>> = {
  confirmation: {
    type: 'confirmation_token',
    action: 'user_confirmation_requested',
    sentAt: (user) => user.confirmationSentAt,
  },
  recovery: {
    type: 'recovery_token',
    action: 'user_recovery_requested',
    sentAt: (user) => user.recoverySentAt,
  },
  phone_change: {
    type: 'phone_change_token',
    action: 'user_confirmation_requested',
    sentAt: (user) => user.phoneChangeSentAt,
  },
  reauthentication: {
    type: 'reauthentication_token',
    action: 'user_reauthenticate_requested',
    sentAt: (user) => user.reauthenticationSentAt,
  },
};

/** Stands for the gateway's message id if the phone has a test code. */
const testMessageId = 'test-otp';

/**
 * Sends a code to a phone, which replaces the user's last one of its kind. Returns the gateway's
 * message id.
 *
 * @throws AppError `over_sms_send_rate_limit`, `sms_send_failed`, or `unexpected_failure` without a
 * gateway; nothing is stored then. With `SVC_SECURITY_UNIFORM_ANSWERS` the message is sent in the
 * background.
 */
export async function sendPhoneCode(
  context: MessagesContext,
  user: User,
  {
    kind,
    phone,
    channel,
  }: {
    readonly kind: PhoneCodeKind;
    /** Digits. For a change of phone, the new one. */
    readonly phone: string;
    readonly channel: SmsChannel;
  },
  metadata: RequestMetadata,
): Promise<{ readonly messageId?: string }> {
  const { store, random, settings, background } = context;
  const { type, action, sentAt } = codeDefinitions[kind];
  const spacingMs = settings.smsMaxFrequencyMs;
  // Applies to test codes, too: they should behave like other codes.
  const seconds = secondsUntilNext(sentAt(user), spacingMs, metadata.nowMs);
  if (seconds > 0) throw tooSoon('phone', seconds);
  const testCode = getTestCode(phone, settings, metadata.nowMs);
  if (testCode === undefined) await enforceMessageQuota(context, 'phone', metadata.nowMs);

  const code = testCode ?? random.otp(otpDigits(settings.smsOtpLength));
  const hash = hashOneTimeToken(phone, code, settings);
  const token = { userId: user.id, type, hash, relatesTo: phone, at: new Date(metadata.nowMs) };
  // Repeats the check of the spacing, for concurrent requests.
  const notSince = new Date(metadata.nowMs - spacingMs);
  if (!(await store.oneTimeTokens.replace([token], auditEntry(user, action, { metadata }), { notSince })))
    throw tooSoon('phone', Math.ceil(spacingMs / 1000));
  if (testCode !== undefined) return { messageId: testMessageId };
  const message = { to: phone, code, channel, languages: userLanguages(user, metadata) };
  // The response must not depend on the gateway: its latency and errors disclose that there is a
  // user.
  if (settings.uniformAnswers) {
    background.run(
      'text message',
      async () => void (await deliver(context, { user, message, token }, metadata)),
    );
    return {};
  }
  try {
    const messageId = await deliver(context, { user, message, token }, metadata);
    return messageId === '' ? {} : { messageId };
  } catch (error) {
    throw toSendError(context, error);
  }
}

async function deliver(
  context: MessagesContext,
  { token, ...sending }: CodeSending & { readonly token: OneTimeToken },
  metadata: RequestMetadata,
): Promise<string> {
  try {
    return await sendCode(context, sending, metadata);
  } catch (error) {
    await context.store.oneTimeTokens.withdraw([token]);
    throw error;
  }
}

interface CodeSending {
  readonly user: User;
  readonly message: CodeMessage;
  /** Tells a hook what the code is for; absent for a contact of the user. */
  readonly type?: 'mfa';
}

/** Sends a code by the hook or the gateway. Returns the gateway's message id; empty for none. */
export async function sendCode(
  { sms, hooks }: MessagesContext,
  { user, message, type }: CodeSending,
  metadata: RequestMetadata,
): Promise<string> {
  if (!hooks.enabled.has('SEND_SMS')) return (await sms.send(message)).messageId;
  const { to, code, channel } = message;
  const details = { otp: code, phone: to, channel, ...(type && { sms_type: type }) };
  await hooks.call('SEND_SMS', { user: toUserJson(user), sms: details }, metadata);
  return '';
}

/** Whether the gateway makes and checks the codes of the phone itself. */
export function isGatewayCode({ sms, settings }: MessagesContext, phone: string, nowMs: number): boolean {
  return sms.check !== undefined && getTestCode(phone, settings, nowMs) === undefined;
}

/** Lets the gateway check a code that it made, which is then spent. */
export async function checkGatewayCode(
  { sms }: MessagesContext,
  submitted: { readonly to: string; readonly code: string },
): Promise<boolean> {
  try {
    return (await sms.check?.(submitted)) ?? false;
  } catch (cause) {
    throw errors.unexpected_failure({ message: 'Unable to check the code with the SMS provider', cause });
  }
}

/** The gateway's reason is for the operator, not for the user. */
export function toSendError({ logger }: MessagesContext, error: unknown): AppError {
  if (isAppError(error)) return error;
  logger.error({ err: error }, 'failed to send text message');
  return errors.sms_send_failed({ cause: error });
}

/** Parses the channel of a code; `sms` by default. @throws AppError `validation_failed` */
export function readChannel(
  text: string | undefined,
  { channels }: Pick<SmsGateway, 'channels'>,
): SmsChannel {
  if (text === undefined || text === '' || text === 'sms') return 'sms';
  if (text === 'whatsapp' && channels.includes('whatsapp')) return 'whatsapp';
  throw errors.validation_failed({
    message:
      "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or Twilio Verify is used as the provider.",
  });
}
