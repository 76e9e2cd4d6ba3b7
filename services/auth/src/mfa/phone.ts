import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { userLanguages } from '../i18n/languages.ts';
import { isEqualSecret } from '../keys/secrets.ts';
import {
  checkGatewayCode,
  getTestCode,
  isGatewayCode,
  readChannel,
  sendCode,
  toSendError,
} from '../messages/phone-codes.ts';
import { enforceSmsQuota, secondsUntilNext, tooSoon } from '../messages/quotas.ts';
import type { SmsChannel } from '../messages/sms-gateway.ts';
import { hashOneTimeToken, oneTimeTokenHashes, otpDigits } from '../one-time-tokens/hash.ts';
import type { Factor } from '../users/factor.ts';
import { readPhone, type User } from '../users/user.ts';
import type { MfaContext } from './context.ts';
import type { FactorType } from './factor-type.ts';

/** Codes sent to a phone, which need not be the phone that the user signs in with. */
export const phone: FactorType = {
  method: 'mfa/phone',
  invalidMessage: 'Invalid MFA Phone code entered',

  async enroll(_context, { user, body }) {
    const text = body.phone ?? '';
    if (text === '')
      throw errors.validation_failed({ message: 'Phone number required to enroll Phone factor' });
    const digits = readPhone(text);
    if (user.factors.some((factor) => factor.phone === digits && factor.status === 'verified'))
      throw errors.mfa_verified_factor_exists();
    return { columns: { phone: digits }, members: { phone: text } };
  },

  async challenge(context, { user, factor, body }, metadata) {
    const channel = readChannel(body.channel, context.sms);
    return { columns: { otpCode: await send(context, { user, factor, channel }, metadata) } };
  },

  async verify(context, { user, factor, challenge, body }, metadata) {
    const code = body.code ?? '';
    return context.limiter.guess({ kind: 'code', contact: codeKey(user, factor) }, metadata, async () =>
      (await isValid(context, { phone: factor.phone, code, otpCode: challenge.otpCode }, metadata.nowMs))
        ? {}
        : undefined,
    );
  },
};

/** Key of wrong codes and of the spacing. A new factor of the same phone resets neither. */
function codeKey(user: User, factor: Factor): string {
  return `${user.id} ${factor.phone}`;
}

/** Sends a code, and returns its stored form. */
async function send(
  context: MfaContext,
  { user, factor, channel }: { readonly user: User; readonly factor: Factor; readonly channel: SmsChannel },
  metadata: RequestMetadata,
): Promise<string> {
  const { limiter, random, settings } = context;
  const { nowMs } = metadata;
  const key = codeKey(user, factor);
  const spacingMs = Math.max(1, settings.mfaPhoneMaxFrequencyMs);
  if (!(await limiter.takeSpaced('factor_code', { key, spacingMs }, nowMs)).allowed)
    throw tooSoon('phone', secondsUntilNext(factor.lastChallengedAt, spacingMs, nowMs) || 1);
  const testCode = getTestCode(factor.phone, settings, nowMs);
  const code = testCode ?? random.otp(otpDigits(settings.mfaPhoneOtpLength));
  if (testCode === undefined) {
    const languages = userLanguages(user, metadata);
    const message = { to: factor.phone, code, channel, languages, template: 'mfaPhoneTemplate' } as const;
    try {
      await enforceSmsQuota(context, nowMs);
      await sendCode(context, { user, message, type: 'mfa' }, metadata);
    } catch (error) {
      await limiter.giveBack('factor_code', key);
      throw toSendError(context, error);
    }
  }
  return settings.dbSharedWithGotrue ? code : hashOneTimeToken(factor.phone, code, settings);
}

/** Codes of GoTrue are stored as they are. */
const plainCode = /^\d{4,10}$/;

async function isValid(
  context: MfaContext,
  { phone, code, otpCode }: { readonly phone: string; readonly code: string; readonly otpCode: string },
  nowMs: number,
): Promise<boolean> {
  if (isGatewayCode(context, phone, nowMs)) return checkGatewayCode(context, { to: phone, code });
  // Anything else must not match: a hash in the database must not be valid as a code.
  if (!plainCode.test(code)) return false;
  return [code, ...oneTimeTokenHashes(phone, code, context.settings)]
    .map((form) => isEqualSecret(form, otpCode))
    .includes(true);
}
