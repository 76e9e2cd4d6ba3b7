import { testCodeOf } from '../../domain/text-message.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { FoundOneTimeToken, OneTimeTokenType } from '../../ports/one-time-token-store.ts';
import type { DepsWith } from '../../services.ts';
import { oneTimeTokenHashes } from '../../tokens/hash-one-time-token.ts';

/** A code that somebody shows, and the phone that it is said to have gone to. */
export interface ShownPhoneCode {
  /** As it is kept: digits. */
  readonly phone: string;
  readonly code: string;
  readonly types: readonly OneTimeTokenType[];
}

/** Finds the token of a code that went to a phone, and its user; undefined for a wrong code. */
export type FindPhoneToken = (
  shown: ShownPhoneCode,
  nowMs: number,
) => Promise<{ readonly token: FoundOneTimeToken; readonly user: User } | undefined>;

/** What that takes. */
export type FindPhoneTokenDeps = DepsWith<
  'store' | 'sms',
  'jwtSecret' | 'smsOtpExpMs' | 'smsTestOtp' | 'smsTestOtpValidUntil'
>;

/** Creates {@link FindPhoneToken}: by the hash of the code, or where the gateway makes codes of its own, by asking it. */
export function createFindPhoneToken({ store, sms, settings }: FindPhoneTokenDeps): FindPhoneToken {
  /** Asked for phones that nobody has as well: how long that takes must not tell which ones somebody has. */
  async function isGood(phone: string, code: string): Promise<boolean> {
    try {
      return (await sms.check?.({ to: phone, code })) ?? false;
    } catch (cause) {
      throw errors.unexpected_failure({ message: 'Unable to check the code with the SMS provider', cause });
    }
  }

  return async ({ phone, code, types }, nowMs) => {
    const isKnownBeforehand = testCodeOf(phone, settings, nowMs) !== undefined;
    if (sms.check === undefined || isKnownBeforehand)
      return store.oneTimeTokens.find(oneTimeTokenHashes(phone, code, settings), types);
    const since = new Date(nowMs - settings.smsOtpExpMs);
    const sent = await store.oneTimeTokens.findSentTo(phone, types, since);
    return (await isGood(phone, code)) ? sent : undefined;
  };
}
