import { encodeBase64Url, randomToken } from './encoding.ts';
import { ConfigurationError } from './errors.ts';
import {
  type AlgorithmParameters,
  isJwsAlgorithm,
  isSymmetric,
  type JwsAlgorithm,
  jwsAlgorithms,
} from './jwt/algorithms.ts';
import { importKey, type Jwk, type WebCryptoKey } from './jwt/import-key.ts';
import { signJwt } from './jwt/sign.ts';

/** An imported key pair that DPoP proofs are signed with. */
export interface DpopKey {
  readonly algorithm: JwsAlgorithm;
  readonly privateKey: WebCryptoKey;
  /** The public members, which proofs contain. */
  readonly publicJwk: Jwk;
  /**
   * SHA-256 thumbprint of the public key: `jkt` in tokens, `dpop_jkt` in authorization requests.
   */
  readonly thumbprint: string;
}

/**
 * Required members by key type, in the order of the thumbprint.
 * @see RFC 7638 §3.2 https://www.rfc-editor.org/rfc/rfc7638#section-3.2
 */
const publicMembers: Readonly<Record<string, readonly string[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
};

/**
 * Generates a private JSON Web Key. Tokens cannot be used without the key they were requested with:
 * store it beside the refresh token, protected like it.
 *
 * @param algorithm default ES256, which every server with DPoP supports
 */
export async function generateDpopKey(algorithm: JwsAlgorithm = 'ES256'): Promise<Jwk> {
  if (!isJwsAlgorithm(algorithm) || isSymmetric(algorithm)) {
    throw new ConfigurationError(
      `DPoP proofs are signed with a key pair, such as ES256; got ${JSON.stringify(algorithm)}`,
    );
  }
  const parameters: AlgorithmParameters = jwsAlgorithms[algorithm];
  const rsa = parameters.keyType === 'RSA' && { modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1) };
  const pair: object = await crypto.subtle.generateKey({ ...parameters.importParameters, ...rsa }, true, [
    'sign',
    'verify',
  ]);
  if (!('privateKey' in pair)) throw new ConfigurationError(`${algorithm} has no private key`);
  // The member of a key pair.
  const privateKey = pair.privateKey as WebCryptoKey;
  return { ...(await crypto.subtle.exportKey('jwk', privateKey)), alg: algorithm };
}

/**
 * Imports a private JSON Web Key for signing proofs. The algorithm is its `alg`, or that of the key
 * type.
 *
 * @throws {ConfigurationError} if the key is not a private key of a supported type
 */
export async function importDpopKey(jwk: Jwk): Promise<DpopKey> {
  const algorithm = getAlgorithm(jwk);
  const names = publicMembers[jwk.kty ?? ''];
  if (algorithm === undefined || names === undefined) {
    throw new ConfigurationError('a DPoP key is a private JSON Web Key of type EC, OKP (Ed25519) or RSA');
  }
  const privateKey = await importKey(jwk, algorithm, 'sign');
  const publicJwk = Object.fromEntries(names.map((name) => [name, jwk[name]]));
  return { algorithm, privateKey, publicJwk, thumbprint: await calculateThumbprint(publicJwk) };
}

function getAlgorithm(jwk: Jwk): JwsAlgorithm | undefined {
  const names: readonly unknown[] = [jwk.alg, 'ES256', 'ES384', 'ES512', 'EdDSA', 'PS256'];
  return names.filter(isJwsAlgorithm).find((algorithm) => {
    const { keyType, curve }: AlgorithmParameters = jwsAlgorithms[algorithm];
    return keyType === jwk.kty && curve === jwk.crv && !isSymmetric(algorithm);
  });
}

/** @see RFC 7638 §3 https://www.rfc-editor.org/rfc/rfc7638#section-3 */
async function calculateThumbprint(publicJwk: Jwk): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(publicJwk)));
  return encodeBase64Url(new Uint8Array(digest));
}

/** Far more than an OAuth error. */
const MAXIMUM_ERROR_BYTES = 65_536;

/**
 * Whether the response rejects the request only because its proof lacks the server's nonce, which
 * it contains. A nonce alone does not mean that: servers rotate it with any response, and a spent
 * code must not be sent again.
 * @see RFC 9449 §8 https://www.rfc-editor.org/rfc/rfc9449#section-8
 * @see RFC 9449 §9 https://www.rfc-editor.org/rfc/rfc9449#section-9
 */
export async function isNonceDemand(response: Response): Promise<boolean> {
  const { status, headers } = response;
  if ((status !== 400 && status !== 401) || !headers.has('dpop-nonce')) return false;
  if (headers.get('www-authenticate')?.includes('use_dpop_nonce')) return true;
  const isJson = headers.get('content-type')?.includes('json') ?? false;
  return isJson && isNonceError(await readStart(response.clone()));
}

function isNonceError(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && 'error' in body && body.error === 'use_dpop_nonce';
  } catch {
    return false;
  }
}

/** The start of the body. If it cannot be read, neither can the caller's copy. */
async function readStart(copy: Response): Promise<string> {
  if (copy.body === null) return '';
  const decoder = new TextDecoder();
  const reader = copy.body.getReader();
  let text = '';
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
      if (text.length > MAXIMUM_ERROR_BYTES) {
        // Not awaited: it settles only when the caller's copy is read or cancelled, too.
        void reader.cancel().catch(() => undefined);
        break;
      }
    }
  } catch {
    return '';
  }
  return text;
}

/** Beyond this, the origin that was updated least recently is dropped. */
const MAXIMUM_ORIGINS = 100;

/** Longer nonces are ignored: they are sent with every request. */
const MAXIMUM_NONCE_LENGTH = 1024;

/**
 * The last nonce of each origin, bounded; authorization server and APIs each have their own.
 *
 * @see RFC 9449 §8 https://www.rfc-editor.org/rfc/rfc9449#section-8
 */
export class NonceMemory {
  readonly #nonces = new Map<string, string>();

  get(origin: string): string | undefined {
    return this.#nonces.get(origin);
  }

  /** Stores the value of a response's `DPoP-Nonce` header, if there is one. */
  store(origin: string, nonce: string | null): void {
    if (nonce === null || nonce === '' || nonce.length > MAXIMUM_NONCE_LENGTH) return;
    this.#nonces.delete(origin);
    this.#nonces.set(origin, nonce);
    const [oldest] = this.#nonces.keys();
    if (this.#nonces.size > MAXIMUM_ORIGINS && oldest !== undefined) this.#nonces.delete(oldest);
  }
}

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
