import { createHmac, type KeyObject, sign, timingSafeEqual, verify } from 'node:crypto';
import { RecentlyUsed } from '@tollgate/kit/collections';
import type { SigningKeys, TokenKey } from './signing-keys.ts';

interface JwsAlgorithmDefinition {
  readonly kty: 'oct' | 'RSA' | 'EC' | 'OKP';
  readonly crv?: string;
  sign(input: string, key: KeyObject): Buffer;
  verify(input: string, key: KeyObject, signature: Buffer): boolean;
}

/**
 * Signature algorithms of access tokens. Synchronous: WebCrypto shares libuv's threads with
 * password hashes, where a verification that takes microseconds would wait for hundreds of
 * milliseconds.
 *
 * @see RFC 7518 §3.1 https://www.rfc-editor.org/rfc/rfc7518#section-3.1
 */
export const jwsAlgorithms = {
  HS256: hmac('sha256'),
  RS256: asymmetric({ kty: 'RSA', hash: 'sha256' }),
  RS512: asymmetric({ kty: 'RSA', hash: 'sha512' }),
  ES256: asymmetric({ kty: 'EC', hash: 'sha256', crv: 'P-256' }),
  ES512: asymmetric({ kty: 'EC', hash: 'sha512', crv: 'P-521' }),
  EdDSA: asymmetric({ kty: 'OKP', hash: undefined, crv: 'Ed25519' }),
} as const satisfies Record<string, JwsAlgorithmDefinition>;

/** Value of `alg` in a JOSE header. */
export type JwsAlgorithm = keyof typeof jwsAlgorithms;

function hmac(hash: string): JwsAlgorithmDefinition {
  const digest = (input: string, key: KeyObject): Buffer => createHmac(hash, key).update(input).digest();
  return {
    kty: 'oct',
    sign: digest,
    verify(input, key, signature) {
      const expected = digest(input, key);
      return expected.length === signature.length && timingSafeEqual(expected, signature);
    },
  };
}

function asymmetric(options: {
  readonly kty: 'RSA' | 'EC' | 'OKP';
  readonly hash: string | undefined;
  readonly crv?: string;
}): JwsAlgorithmDefinition {
  const { kty, hash, crv } = options;
  // The ECDSA signature format of JWS; other keys ignore this.
  const dsaEncoding = 'ieee-p1363';
  return {
    kty,
    ...(crv !== undefined && { crv }),
    sign: (input, key) => sign(hash, Buffer.from(input), { key, dsaEncoding }),
    verify: (input, key, signature) => verify(hash, Buffer.from(input), { key, dsaEncoding }, signature),
  };
}

/**
 * Tokens for other purposes have types of their own.
 *
 * @see RFC 8725 §3.11 https://www.rfc-editor.org/rfc/rfc8725#section-3.11
 */
function isAccessTokenType(typ: unknown): boolean {
  return typeof typ === 'string' && /^(?:application\/)?(?:at\+)?jwt$/i.test(typ);
}

/** Claims of a JWT, not validated. */
export type JwtClaims = Readonly<Record<string, unknown>>;

export type VerifiedJwt =
  | { readonly ok: true; readonly claims: JwtClaims }
  | { readonly ok: false; readonly reason: string };

/** Longer tokens are rejected before decoding. */
const maxTokenChars = 16_384;
const base64url = /^[\w-]+$/;

/**
 * Marks ID tokens, which have the signature of access tokens and must not be accepted as such. The
 * header `typ` cannot: some libraries accept `JWT` only.
 */
export const tokenUseClaim = 'token_use';
export const idTokenUse = 'id';

/** Values of the header `typ`. */
export type JwtType = 'JWT' | 'at+jwt' | 'token-introspection+jwt' | 'logout+jwt';

/**
 * Signs claims with the current key.
 *
 * @see RFC 7519 §7.1 https://www.rfc-editor.org/rfc/rfc7519#section-7.1
 */
export function signJwt(claims: JwtClaims, { current }: SigningKeys, typ: JwtType = 'JWT'): string {
  const header = { alg: current.alg, ...(current.kid !== '' && { kid: current.kid }), typ };
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${jwsAlgorithms[current.alg].sign(input, current.signingKey).toString('base64url')}`;
}

/**
 * Verifies signature, `exp` and `nbf`. The algorithm is that of the key: a token with another one
 * is rejected, and so is one with `crit`. The caller decides whether `exp` is required.
 *
 * @see RFC 7519 §7.2 https://www.rfc-editor.org/rfc/rfc7519#section-7.2
 */
export function verifyJwt(token: string, keys: SigningKeys, nowMs: number): VerifiedJwt {
  const signed = verifySignature(token, keys, { isIdToken: false, nowMs });
  return signed.ok ? (checkJwtTimes(signed.claims, nowMs) ?? signed) : signed;
}

/** Verifies the signature of an ID token, which may have expired. */
export function verifyIdToken(token: string, keys: SigningKeys): VerifiedJwt {
  return verifySignature(token, keys, { isIdToken: true });
}

function verifySignature(
  token: string,
  keys: SigningKeys,
  { isIdToken, nowMs }: { readonly isIdToken: boolean; readonly nowMs?: number | undefined },
): VerifiedJwt {
  if (token.length > maxTokenChars) return reject('token is too long');
  const parts = token.split('.');
  const [header64 = '', claims64 = '', signature64 = ''] = parts;
  if (parts.length !== 3) return reject('token contains an invalid number of segments');
  const header = decode(header64);
  if (header === undefined) return reject('token is malformed');
  if (header.typ !== undefined && !isAccessTokenType(header.typ))
    return reject('typ is not that of an access token');
  if (header.crit !== undefined) return reject('critical header parameters are not supported');
  const named = typeof header.kid === 'string' ? keys.byKid.get(header.kid) : undefined;
  const key = named ?? keys.fallback;
  if (header.alg !== key.alg || !keys.algorithms.has(key.alg)) {
    // Helps operators after a key rotation.
    const namesUnknown = named === undefined && header.kid !== undefined;
    return reject(namesUnknown ? 'no key has the kid of the token' : 'signing method is invalid');
  }
  // Buffer.from skips invalid characters, so a signature would have many encodings.
  if (!base64url.test(signature64)) return reject('signature is invalid');
  const signature = Buffer.from(signature64, 'base64url');
  if (!isValidSignature(key.alg, `${header64}.${claims64}`, key, signature))
    return reject('signature is invalid');
  // Parsed last: parsing unauthenticated input costs more than the signature.
  const claims = decode(claims64);
  if (claims === undefined) return reject('token is malformed');
  if ((claims[tokenUseClaim] === idTokenUse) !== isIdToken)
    return reject(isIdToken ? 'it is not an ID token' : 'it is an ID token');
  if (nowMs !== undefined) keys.verifiedMs.set(key.kid, nowMs);
  return { ok: true, claims };
}

interface IssuerSettings {
  readonly jwtIssuer: string;
  readonly jwtIssuerRequired: boolean;
  readonly apiExternalUrl: string;
}

interface AudienceSettings {
  readonly jwtAud: string;
  readonly jwtAudienceRequired: boolean;
  readonly jwtAudiences: readonly string[];
}

/** The issuer of the metadata, and of tokens that always have one. */
export function issuerUrl({ jwtIssuer, apiExternalUrl }: Omit<IssuerSettings, 'jwtIssuerRequired'>): string {
  return jwtIssuer || apiExternalUrl.replace(/\/+$/, '');
}

/** The claim `iss` of new tokens of users; empty for none. */
export function tokenIssuer(settings: IssuerSettings): string {
  return settings.jwtIssuerRequired ? issuerUrl(settings) : settings.jwtIssuer;
}

/** The audience of tokens where users have none, that of GoTrue's clients. */
const defaultAudience = 'authenticated';

/** The claim `aud` of new tokens of a user with this audience; empty for none. */
export function tokenAudience(aud: string, { jwtAud, jwtAudienceRequired }: AudienceSettings): string {
  return aud === '' && jwtAudienceRequired ? jwtAud || defaultAudience : aud;
}

/** Why a token with a valid signature is not for this server, if the settings want to know. */
export function findForeignClaim(
  { iss, aud }: JwtClaims,
  settings: IssuerSettings & AudienceSettings,
): string | undefined {
  if (settings.jwtIssuerRequired && iss !== tokenIssuer(settings))
    return 'iss is not the issuer of this server';
  if (!settings.jwtAudienceRequired) return undefined;
  const accepted: readonly unknown[] = [tokenAudience('', settings), ...settings.jwtAudiences];
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return named.some((name) => accepted.includes(name)) ? undefined : 'aud is not an audience of this server';
}

/** Checks `exp` and `nbf`. Undefined: the token is valid. */
function checkJwtTimes({ exp, nbf }: JwtClaims, nowMs: number): VerifiedJwt | undefined {
  const nowSeconds = nowMs / 1000;
  if (exp !== undefined && (typeof exp !== 'number' || exp <= nowSeconds)) return reject('token is expired');
  if (nbf !== undefined && (typeof nbf !== 'number' || nbf > nowSeconds))
    return reject('token is not valid yet');
  return undefined;
}

function isValidSignature(alg: JwsAlgorithm, input: string, key: TokenKey, signature: Buffer): boolean {
  return jwsAlgorithms[alg].verify(input, key.verifyingKey, signature);
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function decode(text: string): JwtClaims | undefined {
  if (!base64url.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JwtClaims) // an object with unknown members
      : undefined;
  } catch {
    return undefined;
  }
}

function reject(reason: string): VerifiedJwt {
  return { ok: false, reason };
}

/** Tokens usually have fewer than 1,000 characters, so this holds about 10,000. */
const defaultCapacityChars = 8 * 1024 * 1024;

/**
 * Verifies access tokens as {@link verifyJwt} does, and the signature of a repeated token only
 * once.
 */
export class TokenCache {
  readonly #claims;
  #verifiedBy: SigningKeys['byKid'] | undefined;

  /** `capacityChars` limits the total length of the cached tokens. */
  constructor({ capacityChars = defaultCapacityChars }: { readonly capacityChars?: number } = {}) {
    // The key is the whole token: a Map compares it up to the last character.
    this.#claims = new RecentlyUsed<JwtClaims>({
      capacity: capacityChars,
      weigh: (token) => token.length,
    });
  }

  /** The claims of a token whose signature was verified before; it may have expired since. */
  recall(token: string, keys: SigningKeys): JwtClaims | undefined {
    this.#clearAfterRotation(keys);
    return this.#claims.get(token);
  }

  verify(token: string, keys: SigningKeys, nowMs: number): VerifiedJwt {
    const signed = this.#verifySignature(token, keys, nowMs);
    return signed.ok ? (checkJwtTimes(signed.claims, nowMs) ?? signed) : signed;
  }

  /** Whether these keys signed the token; it may have expired since. */
  isSigned(token: string, keys: SigningKeys): boolean {
    return this.#verifySignature(token, keys).ok;
  }

  #verifySignature(token: string, keys: SigningKeys, nowMs?: number): VerifiedJwt {
    const claims = this.recall(token, keys);
    if (claims !== undefined) return { ok: true, claims };
    const signed = verifySignature(token, keys, { isIdToken: false, nowMs });
    if (signed.ok) this.#claims.set(token, signed.claims);
    return signed;
  }

  /** A key may have been removed because it was compromised. */
  #clearAfterRotation({ byKid }: SigningKeys): void {
    if (byKid === this.#verifiedBy) return;
    this.#verifiedBy = byKid;
    this.#claims.clear();
  }
}
