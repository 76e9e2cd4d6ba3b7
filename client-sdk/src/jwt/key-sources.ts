import { type AlgorithmParameters, isSymmetric, type JwsAlgorithm, jwsAlgorithms } from './algorithms.ts';
import { importKey, type Jwk, type WebCryptoKey } from './import-key.ts';

/** The members of a JWT's header that identify the key which signed it. */
interface WantedKey {
  readonly algorithm: JwsAlgorithm;
  /** `kid` of the header, if it has one. */
  readonly keyId: string | undefined;
}

/** The keys that signatures are verified with. */
export interface KeySource {
  /**
   * The keys that may have signed. With `reload` the source loads them again, subject to its own
   * rate limit.
   */
  find(wanted: WantedKey, options?: { readonly reload?: boolean }): Promise<readonly WebCryptoKey[]>;
}

/** Further keys of a set are ignored: each costs a verification if a token names none. */
const MAXIMUM_KEYS = 100;

/**
 * A JSON Web Key Set.
 *
 * @see RFC 7517 §5 https://www.rfc-editor.org/rfc/rfc7517#section-5
 */
export interface Jwks {
  readonly keys: readonly Jwk[];
}

/** Whether a value has the form of a JSON Web Key Set. */
export function isJwks(value: unknown): value is Jwks {
  if (typeof value !== 'object' || value === null || !('keys' in value) || !Array.isArray(value.keys))
    return false;
  return value.keys.every((key: unknown) => typeof key === 'object' && key !== null && !Array.isArray(key));
}

/** The keys of a fixed set, each imported at first use. */
export class LocalKeySource implements KeySource {
  readonly #keys: readonly Jwk[];
  readonly #imported = new Map<string, Promise<WebCryptoKey | undefined>>();

  constructor(jwks: Jwks) {
    this.#keys = jwks.keys.slice(0, MAXIMUM_KEYS);
  }

  async find(wanted: WantedKey): Promise<readonly WebCryptoKey[]> {
    const found: WebCryptoKey[] = [];
    for (const [index, jwk] of this.#keys.entries()) {
      if (!isCandidate(jwk, wanted)) continue;
      const key = await this.#importOnce(`${index} ${wanted.algorithm}`, jwk, wanted.algorithm);
      if (key !== undefined) found.push(key);
    }
    return found;
  }

  #importOnce(id: string, jwk: Jwk, algorithm: JwsAlgorithm): Promise<WebCryptoKey | undefined> {
    const known = this.#imported.get(id) ?? importOrSkip(jwk, algorithm);
    this.#imported.set(id, known);
    return known;
  }
}

/** A malformed or weak key must not make the others of the set unusable. */
async function importOrSkip(jwk: Jwk, algorithm: JwsAlgorithm): Promise<WebCryptoKey | undefined> {
  try {
    return await importKey(jwk, algorithm, 'verify');
  } catch {
    return undefined;
  }
}

function isCandidate(jwk: Jwk, { algorithm, keyId }: WantedKey): boolean {
  const { keyType, curve }: AlgorithmParameters = jwsAlgorithms[algorithm];
  return (
    jwk.kty === keyType &&
    (keyId === undefined || jwk.kid === keyId) &&
    (curve === undefined || jwk.crv === curve) &&
    (jwk.use === undefined || jwk.use === 'sig') &&
    (jwk.key_ops === undefined || (Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify'))) &&
    (jwk.alg === undefined || jwk.alg === algorithm || keyType === 'OKP')
  );
}

/** One shared secret for HMAC, whatever `kid` a token names. */
export class SecretKeySource implements KeySource {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  async find({ algorithm }: WantedKey): Promise<readonly WebCryptoKey[]> {
    return isSymmetric(algorithm) ? [await importKey(this.#secret, algorithm, 'verify')] : [];
  }
}
