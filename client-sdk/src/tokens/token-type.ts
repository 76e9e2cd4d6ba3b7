import { quote } from '../text.ts';
import type { AccessTokenOptions } from './options.ts';

/**
 * Why a token of this type must not be used; undefined if it may. A missing type means Bearer.
 * Types other than Bearer and DPoP need `authorizationScheme` or `formatHeader`.
 * @see RFC 6749 §7.1 https://www.rfc-editor.org/rfc/rfc6749#section-7.1
 * @see RFC 9449 §5 https://www.rfc-editor.org/rfc/rfc9449#section-5
 */
export function tokenTypeProblem(
  type: unknown,
  { authorizationScheme, formatHeader }: Pick<AccessTokenOptions, 'authorizationScheme' | 'formatHeader'>,
  isProven = false,
): string | undefined {
  const name = type === undefined || type === null || type === '' ? 'bearer' : type;
  const known = typeof name === 'string' ? name.toLowerCase() : undefined;
  if (known === 'dpop') return undefined;
  if (known === 'bearer') {
    return isProven
      ? 'a DPoP token was requested, but a Bearer token received, which is not bound to the key: DPoP is not supported by the server, or not enabled for this client'
      : undefined;
  }
  // Token exchange issued a token that is no access token. @see RFC 8693 §2.2.1
  if (known === 'n_a') return undefined;
  if (authorizationScheme !== undefined || formatHeader !== undefined) return undefined;
  return `the token_type ${quote(type)} is unknown: set \`authorizationScheme\` to the scheme that its tokens are sent with`;
}
