import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import { type JwsAlgorithm, jwsAlgorithms } from './jwt.ts';

/** A key that verifies access tokens. */
export interface TokenKey {
  /** Empty for a key without name. */
  readonly kid: string;
  readonly alg: JwsAlgorithm;
  /** Secret for HS256, public otherwise. */
  readonly verifyingKey: KeyObject;
  /** What JWKS shows of it; undefined for a secret. */
  readonly publicJwk: PublicJwk | undefined;
}

/** A key that signs access tokens, too. */
interface SigningKey extends TokenKey {
  /** Secret for HS256, private otherwise. */
  readonly signingKey: KeyObject;
}

/** A public key as JWKS shows it (RFC 7517). */
interface PublicJwk extends JsonWebKey {
  readonly kid: string;
  readonly alg: JwsAlgorithm;
  readonly use: 'sig';
  readonly key_ops: readonly ['verify'];
}

/** All keys of access tokens; they may change while the service runs. */
export interface SigningKeys {
  /** Signs new tokens. */
  readonly current: SigningKey;
  /** Verify tokens that name them. Another map once any key has changed: whoever keeps what keys have proved compares it. */
  readonly byKid: ReadonlyMap<string, TokenKey>;
  /** Verifies tokens that name no known key. */
  readonly fallback: TokenKey;
  /** Algorithms that a token may be signed with: those of the keys. */
  readonly algorithms: ReadonlySet<string>;
}

/** The settings that keys come from. */
export interface KeySettings {
  readonly jwtSecret: string;
  readonly jwtKeys: string;
  readonly jwtKeyId: string;
  /** The algorithms that tokens may be signed with. Default those of the keys, as for an empty list. */
  readonly jwtValidMethods?: readonly string[];
}

type ParsedKeys =
  | { readonly ok: true; readonly keys: SigningKeys }
  | { readonly ok: false; readonly expected: string };

/** A key as JSON has it; nobody has looked at it yet. */
type Jwk = Readonly<Record<string, unknown>>;

/** A bad key, as a phrase for the operator that shows nothing of it. */
class BadKey extends Error {}

/** Reads `JWT_KEYS`, or makes one HS256 key of `JWT_SECRET` when it is empty. */
export function parseSigningKeys(settings: KeySettings): ParsedKeys {
  try {
    const fallback = secretKey(settings.jwtSecret, settings.jwtKeyId);
    const isSecretAlone = settings.jwtKeys.trim() === '';
    const keys = isSecretAlone ? [fallback] : parseJwks(settings.jwtKeys).map(parseJwk);
    checkAlgorithms(keys, settings.jwtValidMethods ?? []);
    if (isSecretAlone) return { ok: true, keys: collect(fallback, keys, fallback) };
    const signing = keys.filter((key) => 'signingKey' in key);
    const [current] = signing;
    if (signing.length !== 1 || current === undefined)
      throw new BadKey(`exactly one key whose key_ops has "sign", there are ${signing.length}`);
    if (new Set(keys.map(({ kid }) => kid)).size < keys.length) throw new BadKey('keys with different kids');
    return { ok: true, keys: collect(current, keys, fallback) };
  } catch (error) {
    if (error instanceof BadKey) return { ok: false, expected: error.message };
    throw error;
  }
}

/** Tokens are verified with every key there is: one of another algorithm would be more than the operator allows. */
function checkAlgorithms(keys: readonly TokenKey[], allowed: readonly string[]): void {
  const other = keys.find(({ alg }) => !allowed.includes(alg));
  if (allowed.length === 0 || other === undefined) return;
  throw new BadKey(
    `keys of the algorithms of JWT_VALID_METHODS (${allowed.join(', ')}), there is one of ${other.alg}`,
  );
}

function collect(current: SigningKey, keys: readonly TokenKey[], fallback: TokenKey): SigningKeys {
  return {
    current,
    byKid: new Map(keys.filter(({ kid }) => kid !== '').map((key) => [key.kid, key])),
    fallback,
    algorithms: new Set(keys.map(({ alg }) => alg)),
  };
}

function secretKey(secret: string, kid: string): SigningKey {
  const key = createSecretKey(Buffer.from(secret, 'utf8'));
  return { kid, alg: 'HS256', signingKey: key, verifyingKey: key, publicJwk: undefined };
}

function parseJwks(text: string): Jwk[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new BadKey('a JSON array of JWKs');
  }
  if (!Array.isArray(parsed) || parsed.length === 0 || !parsed.every(isObject))
    throw new BadKey('a JSON array of JWKs');
  return parsed;
}

function parseJwk(jwk: Jwk, index: number): TokenKey | SigningKey {
  const { kid, alg, kty } = jwk;
  if (typeof kid !== 'string' || kid === '') throw new BadKey(`a kid in key ${index}`);
  if (typeof alg !== 'string' || !Object.hasOwn(jwsAlgorithms, alg))
    throw new BadKey(`an alg of ${Object.keys(jwsAlgorithms).join(', ')} in key ${kid}`);
  const known = alg as JwsAlgorithm; // it is one of the keys just asked for
  if (kty !== jwsAlgorithms[known].kty)
    throw new BadKey(`kty ${jwsAlgorithms[known].kty} in key ${kid}, as ${alg} wants it`);
  return kty === 'oct' ? octetKey(jwk, kid) : asymmetricKey(jwk, kid, known);
}

function octetKey(jwk: Jwk, kid: string): TokenKey | SigningKey {
  const { k } = jwk;
  if (typeof k !== 'string' || k === '') throw new BadKey(`a k in key ${kid}`);
  const key = createSecretKey(Buffer.from(k, 'base64url'));
  const verifying = { kid, alg: 'HS256', verifyingKey: key, publicJwk: undefined } as const;
  return signs(jwk) ? { ...verifying, signingKey: key } : verifying;
}

function asymmetricKey(jwk: Jwk, kid: string, alg: JwsAlgorithm): TokenKey | SigningKey {
  const signingKey = signs(jwk) || jwk.d !== undefined ? privateKeyOf(jwk, kid) : undefined;
  const verifyingKey = signingKey === undefined ? publicKeyOf(jwk, kid) : createPublicKey(signingKey);
  const shown = verifyingKey.export({ format: 'jwk' });
  const { crv } = jwsAlgorithms[alg];
  if (crv !== undefined && shown.crv !== crv)
    throw new BadKey(`crv ${crv} in key ${kid}, as ${alg} wants it`);
  const publicJwk: PublicJwk = { ...shown, kid, alg, use: 'sig', key_ops: ['verify'] };
  const verifying = { kid, alg, verifyingKey, publicJwk };
  return signingKey !== undefined && signs(jwk) ? { ...verifying, signingKey } : verifying;
}

function privateKeyOf(jwk: Jwk, kid: string): KeyObject {
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' });
  } catch {
    throw new BadKey(`a whole private key in key ${kid}`);
  }
}

function publicKeyOf(jwk: Jwk, kid: string): KeyObject {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' });
  } catch {
    throw new BadKey(`a whole public key in key ${kid}`);
  }
}

function signs({ key_ops: operations }: Jwk): boolean {
  return isStringList(operations) && operations.includes('sign');
}

function isObject(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** RFC 7518 §3.2: a shorter secret of HS256 can be guessed from a single token. */
export const leastSecretBytes = 32;

/** Secrets that verify tokens and are too short. */
export function shortSecrets({ byKid, fallback, algorithms }: SigningKeys): readonly TokenKey[] {
  if (!algorithms.has('HS256')) return [];
  return [...new Set([fallback, ...byKid.values()])].filter(
    // Absent for public keys.
    ({ verifyingKey: { symmetricKeySize = leastSecretBytes } }) => symmetricKeySize < leastSecretBytes,
  );
}
