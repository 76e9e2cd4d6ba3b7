import { compactVerify, createLocalJWKSet, errors, type JSONWebKeySet } from 'jose';
import { relativeTime } from '../output/time.ts';

type Claims = Readonly<Record<string, unknown>>;

/** A token that has been read, and not verified. */
export interface DecodedToken {
  readonly token: string;
  readonly header: Claims;
  readonly claims: Claims;
}

/** The result of one check. Undefined: it was not possible. */
export interface TokenFinding {
  readonly check: 'signature' | 'issuer' | 'time' | 'session';
  readonly ok: boolean | undefined;
  readonly detail: string;
}

/** Undefined for a text that is no JWT. */
export function decodeToken(token: string): DecodedToken | undefined {
  const [header, claims, ...rest] = token.split('.');
  if (header === undefined || claims === undefined || rest.length !== 1) return undefined;
  try {
    return { token, header: readPart(header), claims: readPart(claims) };
  } catch {
    return undefined;
  }
}

/** @throws Error */
function readPart(part: string): Claims {
  const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('no object');
  return { ...value };
}

/** The name and the public keys of an auth server. */
export interface Issuer {
  readonly issuer: string;
  readonly keys: JSONWebKeySet;
}

/** Checks signature, issuer and times. */
export async function checkToken(
  { token, header, claims }: DecodedToken,
  issuer: Issuer | undefined,
  nowMs: number,
): Promise<readonly TokenFinding[]> {
  return [
    await checkSignature(token, header, issuer),
    ...(issuer === undefined ? [] : [checkIssuer(claims, issuer)]),
    checkTimes(claims, nowMs),
  ];
}

async function checkSignature(
  token: string,
  { alg, kid }: Claims,
  issuer: Issuer | undefined,
): Promise<TokenFinding> {
  const check = 'signature' as const;
  if (issuer === undefined)
    return { check, ok: undefined, detail: 'not checked: the context has no auth server' };
  if (typeof alg === 'string' && alg.startsWith('HS'))
    return {
      check,
      ok: undefined,
      detail: `not checked: ${alg} is signed with a secret, not a published key`,
    };
  try {
    await compactVerify(token, createLocalJWKSet(issuer.keys));
  } catch (error) {
    return { check, ok: false, detail: signatureProblem(error, kid) };
  }
  return { check, ok: true, detail: `${String(alg)}, key ${String(kid)}` };
}

function signatureProblem(error: unknown, kid: unknown): string {
  if (error instanceof errors.JWKSNoMatchingKey)
    return `the issuer has no key ${String(kid)} for it: it was retired, or the token is of another issuer`;
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return 'it does not match: the token was changed, or is of another issuer';
  return error instanceof Error ? error.message : String(error);
}

function checkIssuer({ iss }: Claims, { issuer }: Issuer): TokenFinding {
  const check = 'issuer' as const;
  if (iss === undefined) return { check, ok: undefined, detail: 'the token has no iss' };
  const ok = iss === issuer;
  return { check, ok, detail: ok ? issuer : `${String(iss)}, but the auth server is ${issuer}` };
}

function checkTimes({ exp, nbf }: Claims, nowMs: number): TokenFinding {
  const check = 'time' as const;
  if (typeof nbf === 'number' && nbf * 1000 > nowMs)
    return { check, ok: false, detail: `not valid before ${formatTime(nbf, nowMs)}` };
  if (typeof exp !== 'number') return { check, ok: true, detail: 'it does not expire' };
  const isExpired = exp * 1000 <= nowMs;
  return { check, ok: !isExpired, detail: `${isExpired ? 'expired' : 'expires'} ${formatTime(exp, nowMs)}` };
}

/** A time of a claim, in seconds. */
export function formatTime(seconds: number, nowMs: number): string {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  return `${relativeTime(date.getTime(), nowMs)} (${date.toISOString()})`;
}
