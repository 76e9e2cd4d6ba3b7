import { type AppError, isAppError } from '@tollgate/kit/errors';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { type AuditAction, auditEntry } from '../db/audit-log.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { User } from '../users/user.ts';
import { hashOneTimeToken, otpDigits } from '../verification/one-time-tokens.ts';
import type { OneTimeToken, OneTimeTokenType } from '../verification/store.ts';
import { secondsUntilNext, spacingMessage } from './quotas.ts';
import type { CodeMessage, SmsChannel } from './sms.ts';

/** Codes that are known beforehand, for phones that get no message: for reviewers of apps, and tests. */
export interface TestCodes {
  /** By phone, with or without `+`. */
  readonly smsTestOtp: Readonly<Record<string, string>>;
  /** Until when they are good; for ever when absent. */
  readonly smsTestOtpValidUntil: Date | undefined;
}

/** The code that a phone is known by beforehand; undefined for all others. */
export function testCodeOf(phone: string, codes: TestCodes, nowMs: number): string | undefined {
  const { smsTestOtp, smsTestOtpValidUntil } = codes;
  if (smsTestOtpValidUntil !== undefined && smsTestOtpValidUntil.getTime() <= nowMs) return undefined;
  return smsTestOtp[phone] ?? smsTestOtp[`+${phone}`];
}

/** What a code is for. */
export type PhoneCodeKind = 'confirmation' | 'recovery' | 'phone_change' | 'reauthentication';

/** A code that is to be sent. */
interface PhoneCode {
  readonly kind: PhoneCodeKind;
  /** As it is kept: digits. Of a change of phone, the new one. */
  readonly phone: string;
  readonly channel: SmsChannel;
}

/**
 * Sends a code to a phone and keeps its hash in the place of the one before. Answers the gateway's id of the message.
 *
 * @throws AppError `over_sms_send_rate_limit` (too soon for the user, or too many of all users), `sms_send_failed`,
 * `unexpected_failure` without a gateway. Nothing has changed then. With `SVC_SECURITY_UNIFORM_ANSWERS` nobody waits for the gateway.
 */
export type SendPhoneCode = (
  user: User,
  code: PhoneCode,
  metadata: RequestMetadata,
) => Promise<{ readonly messageId?: string }>;

interface KindOfCode {
  readonly type: OneTimeTokenType;
  readonly action: AuditAction;
  readonly sentAt: (user: User) => Date | undefined;
}

const kinds: Readonly<Record<PhoneCodeKind, KindOfCode>> = {
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

/** The gateway's id of a message that was not sent, because the phone's code is known beforehand. */
const testMessageId = 'test-otp';

/** Creates {@link SendPhoneCode}. */
export function createSendPhoneCode(deps: Context): SendPhoneCode {
  const { store, random, settings } = deps;

  async function checkLimits(metadata: RequestMetadata): Promise<void> {
    // Where nobody confirms a phone, few messages are sent, and a sign-up must not fail for a limit.
    if (settings.smsAutoconfirm) return;
    const quota = { limiter: 'sms_sent', key: '', quota: settings.rateLimitSmsSent };
    const answer = await store.quotas.take(quota, metadata.nowMs);
    if (!answer.allowed)
      throw new RetryLaterError(errors.over_sms_send_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
  }

  async function deliver(message: CodeMessage, token: OneTimeToken): Promise<string> {
    try {
      return (await deps.sms.send(message)).messageId;
    } catch (error) {
      await store.oneTimeTokens.withdraw([token]);
      throw error;
    }
  }

  /** What the gateway says is for the operator; the user can only try again. */
  function refusal(error: unknown): AppError {
    if (isAppError(error)) return error;
    deps.logger.error({ err: error }, 'text message was not accepted');
    return errors.sms_send_failed({ cause: error });
  }

  return async (user, { kind, phone, channel }, metadata) => {
    const { type, action, sentAt } = kinds[kind];
    const spacingMs = settings.smsMaxFrequencyMs;
    // Before the codes that are known: those who use one see what all others see.
    const seconds = secondsUntilNext(sentAt(user), spacingMs, metadata.nowMs);
    if (seconds > 0) throw tooSoon(seconds);
    const known = testCodeOf(phone, settings, metadata.nowMs);
    if (known === undefined) await checkLimits(metadata);

    const code = known ?? random.otp(otpDigits(settings.smsOtpLength));
    const at = new Date(metadata.nowMs);
    const hash = hashOneTimeToken(phone, code, settings);
    const token = { userId: user.id, type, hash, relatesTo: phone, at };
    const notSince = new Date(metadata.nowMs - spacingMs);
    // Of requests that come together one gets through.
    if (!(await store.oneTimeTokens.replace([token], auditEntry(user, action, { metadata }), { notSince })))
      throw tooSoon(Math.ceil(spacingMs / 1000));
    if (known !== undefined) return { messageId: testMessageId };
    const message = { to: phone, code, channel };
    // How long a gateway takes, and whether it refuses, tells that there is somebody to write to.
    if (settings.uniformAnswers) {
      deps.background.run('text message', async () => void (await deliver(message, token)));
      return {};
    }
    try {
      const messageId = await deliver(message, token);
      return messageId === '' ? {} : { messageId };
    } catch (error) {
      throw refusal(error);
    }
  };
}

function tooSoon(seconds: number): RetryLaterError {
  const error = errors.over_sms_send_rate_limit({ message: spacingMessage(seconds) });
  return new RetryLaterError(error, seconds);
}

/** Those of Twilio send by WhatsApp too, and the log takes everything. */
const whatsappGateways: readonly Settings['smsProvider'][] = ['twilio', 'twilio_verify', 'log'];

/** Reads the way a code is to travel; `sms` when nobody says. @throws AppError `validation_failed`. */
export function readChannel(text: string | undefined, settings: Pick<Settings, 'smsProvider'>): SmsChannel {
  if (text === undefined || text === '' || text === 'sms') return 'sms';
  if (text === 'whatsapp' && whatsappGateways.includes(settings.smsProvider)) return 'whatsapp';
  throw errors.validation_failed({
    message:
      "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or Twilio Verify is used as the provider.",
  });
}
