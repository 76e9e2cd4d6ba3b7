import { actionLink } from '../../domain/action-link.ts';
import { otpDigits } from '../../domain/otp-digits.ts';
import type { OneTimeToken, OneTimeTokenType } from '../../ports/one-time-token-store.ts';
import type { Randomness } from '../../ports/randomness.ts';
import type { Settings } from '../../settings/settings.ts';
import { hashOneTimeToken } from '../../tokens/hash-one-time-token.ts';
import type { LinkFlow, LinkTraits } from './link.ts';

/** Settings that links are made from. */
export type LinkSettingName =
  | 'siteUrl'
  | 'apiExternalUrl'
  | 'mailerOtpLength'
  | 'jwtSecret'
  | 'dbSharedWithGotrue'
  | 'mailUrlPath:CONFIRMATION'
  | 'mailUrlPath:RECOVERY'
  | 'mailUrlPath:INVITE'
  | 'mailUrlPath:EMAIL_CHANGE';

type LinkSettings = Pick<Settings, LinkSettingName>;

/** A code, and what is kept of it. */
export interface LinkToken {
  readonly code: string;
  readonly token: OneTimeToken;
}

/** Makes a code for a contact. */
export function newLinkToken(
  { random, settings }: { readonly random: Randomness; readonly settings: LinkSettings },
  of: {
    readonly userId: string;
    readonly type: OneTimeTokenType;
    readonly contact: string;
    readonly flow: LinkFlow;
    readonly at: Date;
  },
): LinkToken {
  const code = random.otp(otpDigits(settings.mailerOtpLength));
  const prefix = of.flow === 'pkce' ? 'pkce_' : '';
  const { userId, type, contact: relatesTo, at } = of;
  const hash = hashOneTimeToken(relatesTo, code, settings);
  return {
    code,
    token: { userId, type, hash: `${prefix}${hash}`, relatesTo, at },
  };
}

/** The link of a token. */
export function linkOf(
  settings: LinkSettings,
  { path, type }: Pick<LinkTraits, 'path' | 'type'>,
  { hash, redirectTo }: { readonly hash: string; readonly redirectTo: string },
): string {
  return actionLink({
    externalUrl: settings.apiExternalUrl,
    path: settings[`mailUrlPath:${path}`],
    token: hash,
    type,
    redirectTo,
  });
}
