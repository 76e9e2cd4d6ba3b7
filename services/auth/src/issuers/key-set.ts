import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { algorithmNames } from '@tollgate/policies/routes-file/algorithms';
import { fitsAlgorithm } from './algorithms.ts';

/** A public key of an issuer. */
export interface VerificationKey {
  readonly kid: string | undefined;
  readonly kty: string;
  readonly crv: string | undefined;
  /** Undefined: any algorithm of the type. */
  readonly alg: string | undefined;
  /** The only issuer whose tokens it verifies, in key sets that several share. */
  readonly issuer: string | undefined;
  readonly key: KeyObject;
}

export interface ParsedKeySet {
  readonly keys: readonly VerificationKey[];
  /** Keys that are not used, with the reason. */
  readonly ignored: readonly { readonly kid: string; readonly reason: string }[];
}

/** A token without `kid` is verified with each key of its algorithm. */
const maxKeys = 100;
/** RFC 7518 §3.3 requires 2048; the time of a verification grows with the size. */
const rsaBits = { min: 2048, max: 8192 };

/**
 * Parses a JWK set. Keys that cannot verify signatures are ignored, as RFC 7517 §5 recommends.
 * An empty list withdraws all keys.
 *
 * @throws Error if it is not a JWK set, or has keys of which none is usable.
 */
export function parseKeySet(text: string): ParsedKeySet {
  const jwks = parseJwks(text);
  if (jwks.length > maxKeys) throw new Error(`the key set has ${jwks.length} keys, more than ${maxKeys}`);
  const keys: VerificationKey[] = [];
  const ignored: { kid: string; reason: string }[] = [];
  for (const jwk of jwks) {
    const read = readKey(jwk);
    if (typeof read === 'string') ignored.push({ kid: nonEmpty(jwk.kid) ?? '', reason: read });
    else keys.push(read);
  }
  if (keys.length === 0 && jwks.length > 0)
    throw new Error('the key set has no key that can verify signatures');
  return { keys, ignored };
}

type Jwk = Readonly<Record<string, unknown>>;

function parseJwks(text: string): readonly Jwk[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error('the key set is not JSON');
  }
  const keys = isObject(parsed) ? parsed.keys : undefined;
  if (!Array.isArray(keys) || !keys.every(isObject)) throw new Error('the key set has no list of keys');
  return keys;
}

/** The key, or why it is ignored. */
export function readKey(jwk: Jwk): VerificationKey | string {
  const { kty, use, key_ops: operations, alg } = jwk;
  const crv = nonEmpty(jwk.crv);
  if (use !== undefined && use !== 'sig') return 'use is not sig';
  if (Array.isArray(operations) && !operations.includes('verify')) return 'key_ops has no verify';
  if (typeof kty !== 'string' || !algorithmNames.some((name) => fitsAlgorithm(name, kty, crv)))
    return 'its type or curve is not supported';
  if (alg !== undefined && !algorithmNames.some((name) => name === alg && fitsAlgorithm(name, kty, crv)))
    return 'its algorithm is not supported';
  const key = importKey(jwk);
  if (key === undefined) return 'it is not a public key';
  const { modulusLength } = key.asymmetricKeyDetails ?? {};
  if (modulusLength !== undefined && (modulusLength < rsaBits.min || modulusLength > rsaBits.max))
    return `it has ${modulusLength} bits, not ${rsaBits.min} to ${rsaBits.max}`;
  return { kid: nonEmpty(jwk.kid), kty, crv, alg: nonEmpty(alg), issuer: nonEmpty(jwk.issuer), key };
}

function importKey(jwk: Jwk): KeyObject | undefined {
  // A private key that was published by mistake is used as the public key that it contains.
  const { d: _, ...publicJwk } = jwk;
  try {
    // Parsed boundary: Node checks the members.
    return createPublicKey({ key: publicJwk as JsonWebKey, format: 'jwk' });
  } catch {
    return undefined;
  }
}

/** A text that is not empty. */
function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function isObject(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
