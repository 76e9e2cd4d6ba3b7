import type { Algorithm } from '@tollgate/policies/routes-file/algorithms';
import type { IssuerDefinition, TokenType } from '@tollgate/policies/routes-file/issuer';
import { findBindingProblem } from '../keys/bound-tokens.ts';
import { fitsAlgorithm, verifySignature } from './algorithms.ts';
import { tenantPlaceholder } from './definition.ts';
import type { VerificationKey } from './key-set.ts';

/** Claims of a token, not validated. */
export type Claims = Readonly<Record<string, unknown>>;

/** A JWT that was parsed, not verified. */
export interface DecodedJwt {
  readonly header: Claims;
  readonly claims: Claims;
  /** The signed part of the token. */
  readonly input: string;
  readonly signature: Buffer;
}

export type VerifiedToken =
  | { readonly ok: true; readonly claims: Claims; readonly expiresAtMs: number }
  /** `isKeyUnknown`: keys that are loaded now may verify it. */
  | { readonly ok: false; readonly reason: string; readonly isKeyUnknown: boolean };

/** Longer tokens are rejected before they are decoded. */
export const maxTokenChars = 16_384;
const base64url = /^[\w-]+$/;

/** Undefined if it is not a signed JWT. */
export function decodeJwt(token: string): DecodedJwt | undefined {
  if (token.length > maxTokenChars) return undefined;
  const parts = token.split('.');
  const [header64 = '', claims64 = '', signature64 = ''] = parts;
  // Buffer.from skips invalid characters, so a signature would have many encodings.
  if (parts.length !== 3 || !base64url.test(signature64)) return undefined;
  const header = decodeObject(header64);
  const claims = header && decodeObject(claims64);
  if (header === undefined || claims === undefined) return undefined;
  return {
    header,
    claims,
    input: `${header64}.${claims64}`,
    signature: Buffer.from(signature64, 'base64url'),
  };
}

function decodeObject(text: string): Claims | undefined {
  if (!base64url.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Claims) // an object with unknown members
      : undefined;
  } catch {
    return undefined;
  }
}

/** The issuer that a token must be of. */
export interface Expected {
  readonly definition: IssuerDefinition;
  /** Exact value of `iss`, or the pattern of all tenants. */
  readonly issuer: string;
  readonly keys: readonly VerificationKey[];
  readonly nowMs: number;
}

/**
 * Verifies a JWT of another issuer: type, algorithm, signature, issuer, audience and times.
 *
 * @see RFC 7519 §7.2, RFC 8725, RFC 9068 §4
 */
export function verifyToken(jwt: DecodedJwt, expected: Expected): VerifiedToken {
  const { header, claims } = jwt;
  const { definition, nowMs } = expected;
  const problem = headerProblem(header, definition.tokenType) ?? issuerProblem(claims, expected);
  if (problem !== undefined) return reject(problem);
  const algorithm = definition.algorithms.find((name) => name === header.alg);
  if (algorithm === undefined) return reject('signing method is invalid');
  const keys = findKeys(expected.keys, header.kid, algorithm).filter((key) => isKeyOf(key, claims));
  if (keys.length === 0) return reject('no key has the kid of the token', { isKeyUnknown: true });
  if (keys.length > maxCandidates) return reject('token has no kid, and its issuer has many keys');
  if (!keys.some(({ key }) => verifySignature(algorithm, key, jwt)))
    // Without a kid, the key may be one that is not loaded yet.
    return reject('signature is invalid', { isKeyUnknown: header.kid === undefined });
  return checkClaims(claims, definition, nowMs);
}

/** Checks of claims that do not need the signature; also those of an introspection response. */
export function checkClaims(
  claims: Claims,
  { audiences, tokenType }: Pick<IssuerDefinition, 'audiences' | 'tokenType'>,
  nowMs: number,
): VerifiedToken {
  const problem =
    typeProblem(claims, tokenType) ??
    audienceProblem(claims, audiences, tokenType) ??
    findBindingProblem(claims) ??
    timeProblem(claims, { tokenType, nowMs });
  if (problem !== undefined) return reject(problem);
  // timeProblem requires a number.
  return { ok: true, claims, expiresAtMs: Number(claims.exp) * 1000 };
}

/** Each costs a verification, which forged tokens without a kid could multiply. */
const maxCandidates = 5;

const accessTokenType = /^(?:application\/)?at\+jwt$/i;
const plainType = /^(?:application\/)?jwt$/i;

/**
 * Tokens for other purposes have types of their own.
 *
 * @see RFC 8725 §3.11 https://www.rfc-editor.org/rfc/rfc8725#section-3.11
 */
function headerProblem({ typ, crit }: Claims, tokenType: TokenType): string | undefined {
  if (crit !== undefined) return 'critical header parameters are not supported';
  const isAccessToken = typeof typ === 'string' && accessTokenType.test(typ);
  const isPlain = typ === undefined || (typeof typ === 'string' && plainType.test(typ));
  if (tokenType === 'at+jwt') return isAccessToken ? undefined : 'typ is not at+jwt';
  if (tokenType === 'id') return isPlain ? undefined : 'typ is not that of an ID token';
  return isAccessToken || isPlain ? undefined : 'typ is not that of an access token';
}

/** `iss` is compared exactly: a token of one issuer is never accepted for another. */
function issuerProblem(claims: Claims, { issuer, definition }: Expected): string | undefined {
  if (!isIssuer(issuer, claims)) return 'iss is not the issuer';
  return tenantProblem(claims, definition);
}

export function tenantProblem(
  { tid }: Claims,
  { tenants }: Pick<IssuerDefinition, 'tenants'>,
): string | undefined {
  if (tenants === undefined || (typeof tid === 'string' && tenants.includes(tid))) return undefined;
  return 'tid is not an accepted tenant';
}

const tenantForm = /^[\w-]{1,64}$/;

/** Whether claims are of an issuer, or of a tenant of a pattern. */
export function isIssuer(issuer: string, { iss, tid }: Claims): boolean {
  if (!issuer.includes(tenantPlaceholder)) return iss === issuer;
  return typeof tid === 'string' && tenantForm.test(tid) && iss === issuer.replace(tenantPlaceholder, tid);
}

function findKeys(
  keys: readonly VerificationKey[],
  kid: unknown,
  algorithm: Algorithm,
): readonly VerificationKey[] {
  return keys.filter(
    (key) =>
      (kid === undefined || key.kid === kid) &&
      (key.alg === undefined || key.alg === algorithm) &&
      fitsAlgorithm(algorithm, key.kty, key.crv),
  );
}

/** Entra limits some keys of its common key set to one issuer. */
function isKeyOf({ issuer }: VerificationKey, claims: Claims): boolean {
  return issuer === undefined || isIssuer(issuer, claims);
}

/** Values of the claims `typ` (Keycloak) and `token_use` (Cognito) of tokens for other purposes. */
const otherUses: ReadonlySet<unknown> = new Set(['Refresh', 'Offline', 'Logout', 'refresh']);
const idTokenUses: ReadonlySet<unknown> = new Set(['ID', 'id']);

/** ID tokens have the type of any JWT, so they are known by their claims. */
function typeProblem(claims: Claims, tokenType: TokenType): string | undefined {
  const { typ, token_use: use, events } = claims;
  // RFC 8417 §2.2: a security event, such as a logout token.
  if (events !== undefined || otherUses.has(typ) || otherUses.has(use))
    return 'it is neither an access token nor an ID token';
  const isMarked = idTokenUses.has(typ) || idTokenUses.has(use);
  if (tokenType === 'id') {
    const isAccessToken = typ === 'Bearer' || use === 'access';
    return isAccessToken ? 'it is an access token' : undefined;
  }
  const hasHash = ['at_hash', 'c_hash', 's_hash'].some((name) => claims[name] !== undefined);
  const hasNonce = claims.nonce !== undefined && claims.scope === undefined && claims.scp === undefined;
  return isMarked || hasHash || (hasNonce && typ !== 'Bearer') ? 'it is an ID token' : undefined;
}

function audienceProblem(
  { aud, azp }: Claims,
  audiences: readonly string[],
  tokenType: TokenType,
): string | undefined {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  const accepted: readonly unknown[] = audiences;
  if (!named.some((name) => accepted.includes(name))) return 'aud is not an accepted audience';
  // OpenID Connect Core §3.1.3.7: an ID token of several audiences is for the client in azp.
  if (tokenType !== 'id' || (named.length === 1 && azp === undefined)) return undefined;
  return accepted.includes(azp) ? undefined : 'azp is not an accepted audience';
}

/** Clocks of other issuers may be ahead. Tokens expire by our clock, without tolerance. */
const toleranceSeconds = 30;

function timeProblem(
  { exp, nbf, iat }: Claims,
  { tokenType, nowMs }: { readonly tokenType: TokenType; readonly nowMs: number },
): string | undefined {
  const nowSeconds = nowMs / 1000;
  if (typeof exp !== 'number') return 'token has no exp claim';
  if (exp <= nowSeconds) return 'token is expired';
  const isLater = (time: unknown) =>
    time !== undefined && (typeof time !== 'number' || time > nowSeconds + toleranceSeconds);
  if (isLater(nbf)) return 'token is not valid yet';
  // Required by RFC 9068 §2.2 and OpenID Connect Core §2, and optional in other JWTs.
  if (iat === undefined && tokenType !== 'access') return 'token has no iat claim';
  return isLater(iat) ? 'iat is in the future' : undefined;
}

function reject(reason: string, { isKeyUnknown = false } = {}): VerifiedToken {
  return { ok: false, reason, isKeyUnknown };
}
