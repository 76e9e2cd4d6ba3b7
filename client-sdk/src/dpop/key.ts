import { encodeBase64Url } from '../encoding.ts';
import { ConfigurationError } from '../errors.ts';
import {
  type AlgorithmParameters,
  isJwsAlgorithm,
  isSymmetric,
  type JwsAlgorithm,
  jwsAlgorithms,
} from '../jwt/algorithms.ts';
import { importKey, isCryptoKey, type Jwk, type WebCryptoKey } from '../jwt/import-key.ts';
import type { SignFunction } from '../jwt/sign.ts';
import { quote } from '../text.ts';

/** An imported key pair that DPoP proofs are signed with. */
export interface DpopKey {
  readonly algorithm: JwsAlgorithm;
  readonly privateKey: WebCryptoKey | SignFunction;
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
 * @param algorithm an algorithm, or the server's `dpop_signing_alg_values_supported`, of which one
 * is chosen. Default ES256, which is also preferred in a list.
 * @throws {ConfigurationError} if no key can be generated for it
 * @see RFC 9449 §5.1 https://www.rfc-editor.org/rfc/rfc9449#section-5.1
 */
export async function generateDpopKey(algorithm: JwsAlgorithm | readonly string[] = 'ES256'): Promise<Jwk> {
  return await generateKey(typeof algorithm === 'string' ? algorithm : chooseAlgorithm(algorithm));
}

function chooseAlgorithm(listed: readonly string[]): JwsAlgorithm {
  if (listed.includes('ES256')) return 'ES256';
  const algorithm = listed.filter(isJwsAlgorithm).find((name) => !isSymmetric(name));
  if (algorithm !== undefined) return algorithm;
  throw new ConfigurationError(
    `no DPoP key can be generated for the algorithms of the server: ${quote(listed.join(', '))}`,
  );
}

async function generateKey(algorithm: JwsAlgorithm): Promise<Jwk> {
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
 * A key pair whose private key cannot be exported: WebCrypto keys, as `crypto.subtle.generateKey`
 * returns them, or a function that signs, such as with a KMS.
 */
export interface DpopKeyPair {
  readonly privateKey: WebCryptoKey | SignFunction;
  /** As a JSON Web Key, its `alg` is the algorithm. Default: that of the key type. */
  readonly publicKey: WebCryptoKey | Jwk;
}

/**
 * Imports a key for signing proofs. The algorithm is the `alg` of the JSON Web Key, or that of the
 * key type.
 *
 * @throws {ConfigurationError} if there is no private key of a supported type
 */
export async function importDpopKey(key: Jwk | DpopKeyPair): Promise<DpopKey> {
  const { privateKey, publicKey } = isKeyPair(key) ? key : { privateKey: key, publicKey: key };
  const jwk: Jwk = isCryptoKey(publicKey)
    ? { ...(await crypto.subtle.exportKey('jwk', publicKey)) }
    : publicKey;
  const algorithm = getAlgorithm(jwk);
  const names = publicMembers[jwk.kty ?? ''];
  if (algorithm === undefined || names === undefined) {
    throw new ConfigurationError(
      'a DPoP key is a private JSON Web Key of type EC, OKP (Ed25519) or RSA, or { privateKey, publicKey }',
    );
  }
  const publicJwk = Object.fromEntries(names.map((name) => [name, jwk[name]]));
  return {
    algorithm,
    privateKey:
      typeof privateKey === 'function' ? privateKey : await importKey(privateKey, algorithm, 'sign'),
    publicJwk,
    thumbprint: await calculateThumbprint(publicJwk),
  };
}

function isKeyPair(key: Jwk | DpopKeyPair): key is DpopKeyPair {
  return typeof key === 'object' && key !== null && 'privateKey' in key && 'publicKey' in key;
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
