import { encodeBase64Url } from '../jwt/base64url.ts';
import { signJwt } from '../jwt/sign.ts';
import { randomToken } from '../random-token.ts';
import type { DpopKey } from './dpop-key.ts';

/** What a proof is about. */
export interface ProofSubject {
  readonly method: string;
  readonly url: string;
  /** Epoch seconds. */
  readonly now: number;
  /** The access token sent with it, when there is one. */
  readonly accessToken?: string | undefined;
  /** The nonce that the server gave, when it did. */
  readonly nonce?: string | undefined;
}

/**
 * Signs a DPoP proof for one request; each has a `jti` of its own, so none can be used twice.
 *
 * @see RFC 9449 §4.2 https://www.rfc-editor.org/rfc/rfc9449#section-4.2
 */
export async function signProof(
  key: DpopKey,
  { method, url, now, accessToken, nonce }: ProofSubject,
): Promise<string> {
  const claims = {
    jti: randomToken(16),
    htm: method.toUpperCase(),
    htu: withoutQuery(url),
    iat: Math.floor(now),
    ...(accessToken !== undefined && { ath: await hashOf(accessToken) }),
    ...(nonce !== undefined && { nonce }),
  };
  const header = { typ: 'dpop+jwt', jwk: key.publicJwk };
  return await signJwt(claims, { algorithm: key.algorithm, key: key.privateKey, header });
}

function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

async function hashOf(token: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return encodeBase64Url(new Uint8Array(digest));
}
