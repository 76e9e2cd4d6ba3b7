import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import { type JwsAlgorithm, jwsAlgorithms } from './jwt.ts';

export interface TokenKey {
  /** Empty for a key without id. */
  readonly kid: string;
  readonly alg: JwsAlgorithm;
  /** Secret for HS256, public otherwise. */
  readonly verifyingKey: KeyObject;
  /** Undefined for a secret. */
  readonly publicJwk: PublicJwk | undefined;
}

interface SigningKey extends TokenKey {
  /** Secret for HS256, private otherwise. */
  readonly signingKey: KeyObject;
}

/** A public key in JWKS (RFC 7517). */
interface PublicJwk extends JsonWebKey {
  readonly kid: string;
  readonly alg: JwsAlgorithm;
  readonly use: 'sig';
  readonly key_ops: readonly ['verify'];
}

/** The keys of access tokens, which may change while the service runs. */
export interface SigningKeys {
  /** Signs new tokens. */
  readonly current: SigningKey;
  /** Verify tokens with a `kid`. A new map after each change, by which caches detect it. */
  readonly byKid: ReadonlyMap<string, TokenKey>;
  /** Verifies tokens without a known `kid`. */
  readonly fallback: TokenKey;
  /** The algorithms of the keys. */
  readonly algorithms: ReadonlySet<string>;
  /**
   * When a signature of a key was verified last, in Unix time in milliseconds, by `kid`. Tokens
   * that a cache knows are not verified again.
   */
  readonly verifiedMs: Map<string, number>;
}

export interface KeySettings {
  readonly jwtSecret: string;
  readonly jwtKeys: string;
  readonly jwtKeyId: string;
  /** Allowed algorithms. Default, and if empty: those of the keys. */
  readonly jwtValidMethods?: readonly string[];
}

type ParsedKeys =
  | { readonly ok: true; readonly keys: SigningKeys }
  | { readonly ok: false; readonly expected: string };

/** A parsed key, not validated. */
type Jwk = Readonly<Record<string, unknown>>;

/** The message states what was expected, without revealing the key. */
class InvalidKey extends Error {}

/** Parses `JWT_KEYS`, or creates an HS256 key from `JWT_SECRET` if it is empty. */
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
      throw new InvalidKey(`exactly one key whose key_ops has "sign", found ${signing.length}`);
    if (new Set(keys.map(({ kid }) => kid)).size < keys.length)
      throw new InvalidKey('keys with different kids');
    return { ok: true, keys: collect(current, keys, fallback) };
  } catch (error) {
    if (error instanceof InvalidKey) return { ok: false, expected: error.message };
    throw error;
  }
}

/** Tokens are verified with all keys, so all must have an allowed algorithm. */
function checkAlgorithms(keys: readonly TokenKey[], allowed: readonly string[]): void {
  const other = keys.find(({ alg }) => !allowed.includes(alg));
  if (allowed.length === 0 || other === undefined) return;
  throw new InvalidKey(
    `keys with an algorithm of JWT_VALID_METHODS (${allowed.join(', ')}), found ${other.alg}`,
  );
}

function collect(current: SigningKey, keys: readonly TokenKey[], fallback: TokenKey): SigningKeys {
  return {
    current,
    byKid: new Map(keys.filter(({ kid }) => kid !== '').map((key) => [key.kid, key])),
    // JWT_SECRET is in JWT_KEYS, with an id, from the first rotation until it is retired.
    fallback: keys.find((key) => isSameSecret(key, fallback)) ?? fallback,
    algorithms: new Set(keys.map(({ alg }) => alg)),
    verifiedMs: new Map(),
  };
}

function isSameSecret({ alg, verifyingKey }: TokenKey, secret: TokenKey): boolean {
  return alg === secret.alg && verifyingKey.equals(secret.verifyingKey);
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
    throw new InvalidKey('a JSON array of JWKs');
  }
  if (!Array.isArray(parsed) || parsed.length === 0 || !parsed.every(isObject))
    throw new InvalidKey('a JSON array of JWKs');
  return parsed;
}

function parseJwk(jwk: Jwk, index: number): TokenKey | SigningKey {
  const { kid, alg, kty } = jwk;
  if (typeof kid !== 'string' || kid === '') throw new InvalidKey(`a kid in key ${index}`);
  if (typeof alg !== 'string' || !Object.hasOwn(jwsAlgorithms, alg))
    throw new InvalidKey(`an alg of ${Object.keys(jwsAlgorithms).join(', ')} in key ${kid}`);
  const known = alg as JwsAlgorithm; // checked above
  if (kty !== jwsAlgorithms[known].kty)
    throw new InvalidKey(`kty ${jwsAlgorithms[known].kty} in key ${kid}, as ${alg} requires`);
  return kty === 'oct' ? octetKey(jwk, kid) : asymmetricKey(jwk, kid, known);
}

function octetKey(jwk: Jwk, kid: string): TokenKey | SigningKey {
  const { k } = jwk;
  if (typeof k !== 'string' || k === '') throw new InvalidKey(`a k in key ${kid}`);
  const key = createSecretKey(Buffer.from(k, 'base64url'));
  const verifying = { kid, alg: 'HS256', verifyingKey: key, publicJwk: undefined } as const;
  return canSign(jwk) ? { ...verifying, signingKey: key } : verifying;
}

function asymmetricKey(jwk: Jwk, kid: string, alg: JwsAlgorithm): TokenKey | SigningKey {
  if (canSign(jwk) && jwk.d === undefined)
    throw new InvalidKey(
      `a private key (d) in key ${kid}, because its key_ops have "sign": keys that stay in a KMS are not supported`,
    );
  const signingKey = canSign(jwk) || jwk.d !== undefined ? parsePrivateKey(jwk, kid) : undefined;
  const verifyingKey = signingKey === undefined ? parsePublicKey(jwk, kid) : createPublicKey(signingKey);
  const exported = verifyingKey.export({ format: 'jwk' });
  const { crv } = jwsAlgorithms[alg];
  if (crv !== undefined && exported.crv !== crv)
    throw new InvalidKey(`crv ${crv} in key ${kid}, as ${alg} requires`);
  const publicJwk: PublicJwk = { ...exported, kid, alg, use: 'sig', key_ops: ['verify'] };
  const verifying = { kid, alg, verifyingKey, publicJwk };
  return signingKey !== undefined && canSign(jwk) ? { ...verifying, signingKey } : verifying;
}

function parsePrivateKey(jwk: Jwk, kid: string): KeyObject {
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' });
  } catch {
    throw new InvalidKey(`a complete private key in key ${kid}`);
  }
}

function parsePublicKey(jwk: Jwk, kid: string): KeyObject {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' });
  } catch {
    throw new InvalidKey(`a complete public key in key ${kid}`);
  }
}

function canSign({ key_ops: operations }: Jwk): boolean {
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
