import { quote } from '../quote.ts';
import type { AccessTokenOptions } from './token-options.ts';

/** Of the answers to requests that carried a DPoP proof: fetch's responses, and what is made of them. */
const answersToProofs = new WeakSet<object>();

/** Notes that a response answers a request with a DPoP proof. */
export function markAnswerToProof(response: object): void {
  answersToProofs.add(response);
}

/** Whether a response answers a request with a DPoP proof, so that its token must be bound to the key. */
export function isAnswerToProof(response: object): boolean {
  return answersToProofs.has(response);
}

/**
 * Why a token of this type must not be used; undefined when it may. A missing type means Bearer. Other types are for callers who say
 * how they are sent.
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
      ? 'a DPoP token was asked for and a Bearer token came, which anyone can use: the server, or this client at it, does not support DPoP'
      : undefined;
  }
  // What token exchange says of an issued token that is no access token. @see RFC 8693 §2.2.1
  if (known === 'n_a') return undefined;
  if (authorizationScheme !== undefined || formatHeader !== undefined) return undefined;
  return `the token_type ${quote(type)} is unknown: set \`authorizationScheme\` to the scheme that its tokens are sent with`;
}
