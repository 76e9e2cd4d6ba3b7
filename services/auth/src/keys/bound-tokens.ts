import type { JwtClaims } from './jwt.ts';

/**
 * The claims of an access token that is bound to a key, by its SHA-256 thumbprint. None for
 * undefined.
 *
 * @see RFC 9449 §6.1 https://www.rfc-editor.org/rfc/rfc9449#section-6.1
 */
export function keyClaims(thumbprint: string | undefined) {
  return thumbprint === undefined ? {} : { cnf: { jkt: thumbprint } };
}

/**
 * Why a token is refused whatever its request proves: it is bound by a method that is not
 * supported, such as `x5t#S256` of a client certificate, and would be a bearer token here.
 *
 * @see RFC 7800 §3.1 https://www.rfc-editor.org/rfc/rfc7800#section-3.1
 */
export function findBindingProblem({ cnf }: { readonly cnf?: unknown }): string | undefined {
  if (cnf === undefined) return undefined;
  const methods = typeof cnf === 'object' && cnf !== null ? Object.keys(cnf) : [];
  const isSupported = methods.length === 1 && methods[0] === 'jkt';
  return isSupported ? undefined : 'cnf has another confirmation method than jkt';
}

/**
 * The thumbprint of the key that an access token is bound to. Undefined for bearer tokens. A value
 * that is no text is no key's, so that the token cannot be used.
 */
export function keyOfToken({ cnf }: JwtClaims): string | undefined {
  if (typeof cnf !== 'object' || cnf === null || !('jkt' in cnf)) return undefined;
  return String(cnf.jkt);
}
