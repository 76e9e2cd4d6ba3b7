import { encodeBase64Url, randomToken } from '../encoding.ts';
import { signJwt } from '../jwt/sign.ts';
import type { DpopKey } from './key.ts';

/** The request that a proof is made for. */
export interface ProofSubject {
  readonly method: string;
  readonly url: string;
  /** Epoch seconds. */
  readonly now: number;
  /** The access token of the request, if there is one. */
  readonly accessToken?: string | undefined;
  /** The server's nonce, if there is one. */
  readonly nonce?: string | undefined;
}

/**
 * Signs a DPoP proof for one request, with a `jti` of its own.
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
    ...(accessToken !== undefined && { ath: await sha256(accessToken) }),
    ...(nonce !== undefined && { nonce }),
  };
  const header = { typ: 'dpop+jwt', jwk: key.publicJwk };
  return await signJwt(claims, { algorithm: key.algorithm, key: key.privateKey, header });
}

function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

async function sha256(token: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return encodeBase64Url(new Uint8Array(digest));
}
