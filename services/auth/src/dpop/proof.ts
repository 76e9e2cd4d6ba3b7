import { createHash, type KeyObject } from 'node:crypto';
import { type Algorithm, algorithmNames } from '@tollgate/policies/routes-file/algorithms';
import { fitsAlgorithm, verifySignature } from '../issuers/algorithms.ts';
import { readKey } from '../issuers/key-set.ts';
import { type Claims, type DecodedJwt, decodeJwt } from '../issuers/verify.ts';
import { normalizeUrl } from './url.ts';

/** Algorithms of proofs: asymmetric ones, because the proof carries its key. */
export const proofAlgorithms: readonly string[] = algorithmNames;

/** The request that a proof must be made for. */
export interface ProvenRequest {
  readonly method: string;
  /** Absolute, as the client sees it. Undefined if the request does not tell. */
  readonly url: string | undefined;
  /** The access token of the request, whose digest the proof must have. */
  readonly accessToken?: string;
  /** The only key that is accepted. Default: any. */
  readonly thumbprint?: string;
}

interface Proof {
  /** The SHA-256 thumbprint of its key. @see RFC 7638 */
  readonly thumbprint: string;
  readonly jti: string;
  readonly nonce: unknown;
  readonly issuedAtMs: number;
}

type VerifiedProof =
  | { readonly ok: true; readonly proof: Proof }
  | { readonly ok: false; readonly reason: string };

/** A proof by RSA with 8,192 bits has about 3,000. */
const maxProofChars = 4_096;
const maxIdChars = 255;
/** Clients make a proof when they send the request. Used ones are stored for as long. */
export const maxAgeMs = 60_000;
/** FAPI 2.0 Security Profile §5.3.2.1: more than 10 seconds, and less than 60. */
export const clockToleranceMs = 30_000;

/**
 * Verifies a proof, except its nonce and that it was not used before.
 *
 * @see RFC 9449 §4.3 https://www.rfc-editor.org/rfc/rfc9449#section-4.3
 */
export function verifyProof(text: string, request: ProvenRequest, nowMs: number): VerifiedProof {
  const jwt = text.length > maxProofChars ? undefined : decodeJwt(text);
  if (jwt === undefined) return reject('the header DPoP must be exactly one signed JWT');
  const used = readProofKey(jwt.header);
  if (typeof used === 'string') return reject(used);
  const { algorithm, key } = used;
  const thumbprint = calculateThumbprint(key);
  // Before the signature: a request with a stolen token must not cost a verification.
  if (request.thumbprint !== undefined && request.thumbprint !== thumbprint)
    return reject('its key is not that of the token');
  if (!verifySignature(algorithm, key, jwt)) return reject('its signature is invalid');
  const problem = findClaimProblem(jwt, request, nowMs);
  if (problem !== undefined) return reject(problem);
  const { jti, nonce, iat } = jwt.claims;
  return { ok: true, proof: { thumbprint, jti: String(jti), nonce, issuedAtMs: Number(iat) * 1000 } };
}

/** Members of private and symmetric keys. @see RFC 7518 §6 */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const;

interface ProofKey {
  readonly algorithm: Algorithm;
  readonly key: KeyObject;
}

/** The key with its algorithm, or why the proof is refused. */
function readProofKey({ typ, alg, jwk, crit }: Claims): ProofKey | string {
  if (typ !== 'dpop+jwt') return 'its typ is not dpop+jwt';
  if (crit !== undefined) return 'critical header parameters are not supported';
  const algorithm = algorithmNames.find((name) => name === alg);
  if (algorithm === undefined) return `its alg must be one of: ${algorithmNames.join(' ')}`;
  if (!isObject(jwk)) return 'its header has no jwk';
  if (privateMembers.some((name) => Object.hasOwn(jwk, name)))
    return 'its jwk has a private key, which must not be sent: use another key from now on';
  const key = readKey(jwk);
  if (typeof key === 'string') return `its jwk cannot be used: ${key}`;
  const isOther = key.alg !== undefined && key.alg !== algorithm;
  if (isOther || !fitsAlgorithm(algorithm, key.kty, key.crv)) return 'its alg is not that of its jwk';
  return { algorithm, key: key.key };
}

function findClaimProblem(
  { claims }: DecodedJwt,
  { method, url, accessToken }: ProvenRequest,
  nowMs: number,
): string | undefined {
  const { jti, htm, htu, iat, ath } = claims;
  if (typeof jti !== 'string' || jti === '' || jti.length > maxIdChars)
    return `its jti must have 1 to ${maxIdChars} characters`;
  if (htm !== method) return 'its htm is not the method of the request';
  if (url === undefined) return 'the gateway does not tell the URL of the request';
  const target = normalizeUrl(url);
  if (typeof htu !== 'string' || target === undefined || normalizeUrl(htu) !== target)
    return `its htu is not the URL of the request${target === undefined ? '' : `, ${target}`}`;
  if (typeof iat !== 'number') return 'it has no iat';
  const ageMs = nowMs - iat * 1000;
  if (!(ageMs <= maxAgeMs)) return `its iat is more than ${maxAgeMs / 1000} s ago`;
  if (ageMs < -clockToleranceMs) return `its iat is more than ${clockToleranceMs / 1000} s ahead`;
  if (accessToken !== undefined && ath !== digest(accessToken)) return 'its ath is not that of the token';
  return undefined;
}

/** Members by key type, in the order of the thumbprint. @see RFC 7638 §3.2, RFC 8037 §2 */
const thumbprintMembers: Readonly<Record<string, readonly string[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
};

/** The key is encoded again: another encoding of the same key is not another key. */
function calculateThumbprint(key: KeyObject): string {
  const jwk: Readonly<Record<string, unknown>> = { ...key.export({ format: 'jwk' }) };
  const members = thumbprintMembers[String(jwk.kty)] ?? [];
  return digest(JSON.stringify(Object.fromEntries(members.map((name) => [name, jwk[name]]))));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function isObject(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function reject(reason: string): VerifiedProof {
  return { ok: false, reason };
}
