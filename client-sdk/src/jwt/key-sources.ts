import { type AlgorithmParameters, isSymmetric, type JwsAlgorithm, jwsAlgorithms } from './algorithms.ts';
import { importKey, type Jwk, type WebCryptoKey } from './import-key.ts';

/** What of a JWT's header tells which key signed it. */
interface WantedKey {
  readonly algorithm: JwsAlgorithm;
  /** `kid` of the header, when it has one. */
  readonly keyId: string | undefined;
}

/** Where the keys come from that a signature is checked with. */
export interface KeySource {
  /**
   * The keys that may have signed, best first; empty when none fits. With `reload` the source looks again where it
   * gets them from, as often as it allows itself to.
   */
  find(wanted: WantedKey, options?: { readonly reload?: boolean }): Promise<readonly WebCryptoKey[]>;
}

/** Keys of a set beyond this are ignored: each costs a verification when a token names none. */
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

/** A key source over a key set that does not change; imports each key when it is first wanted. */
export function createLocalKeySource(jwks: Jwks): KeySource {
  const keys = jwks.keys.slice(0, MAXIMUM_KEYS);
  const imported = new Map<string, Promise<WebCryptoKey | undefined>>();

  async function importOnce(
    index: number,
    jwk: Jwk,
    algorithm: JwsAlgorithm,
  ): Promise<WebCryptoKey | undefined> {
    const id = `${index} ${algorithm}`;
    let key = imported.get(id);
    if (key === undefined) {
      key = importOrSkip(jwk, algorithm);
      imported.set(id, key);
    }
    return await key;
  }

  return {
    async find(wanted) {
      const found: WebCryptoKey[] = [];
      for (const [index, jwk] of keys.entries()) {
        if (!isCandidate(jwk, wanted)) continue;
        const key = await importOnce(index, jwk, wanted.algorithm);
        if (key !== undefined) found.push(key);
      }
      return found;
    },
  };
}

/** One malformed or too weak key must not make the others of the set unusable. */
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

/** A key source for HMAC over one shared secret, whatever `kid` a token names. */
export function createSecretKeySource(secret: string): KeySource {
  return {
    async find({ algorithm }) {
      return isSymmetric(algorithm) ? [await importKey(secret, algorithm, 'verify')] : [];
    },
  };
}
