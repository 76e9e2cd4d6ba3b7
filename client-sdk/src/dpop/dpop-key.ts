import { ConfigurationError } from '../errors/configuration-error.ts';
import {
  type AlgorithmParameters,
  isJwsAlgorithm,
  isSymmetric,
  type JwsAlgorithm,
  jwsAlgorithms,
} from '../jwt/algorithms.ts';
import { encodeBase64Url } from '../jwt/base64url.ts';
import { importKey, type Jwk, type WebCryptoKey } from '../jwt/import-key.ts';

/** A key pair that DPoP proofs are signed with, ready for use. */
export interface DpopKey {
  readonly algorithm: JwsAlgorithm;
  readonly privateKey: WebCryptoKey;
  /** The members of the public key that proofs carry, and nothing else. */
  readonly publicJwk: Jwk;
  /** SHA-256 thumbprint of the public key: `jkt` in tokens, `dpop_jkt` in authorization requests. */
  readonly thumbprint: string;
}

/** Required members by key type, in the order that the thumbprint wants. @see RFC 7638 §3.2 https://www.rfc-editor.org/rfc/rfc7638#section-3.2 */
const publicMembers: Readonly<Record<string, readonly string[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
};

/**
 * Makes a fresh key pair as a private JSON Web Key. Tokens are of no use without the key they were asked for with:
 * keep it beside the refresh token, as secret as that.
 *
 * @param algorithm default ES256, which every server that knows DPoP accepts
 */
export async function generateDpopKey(algorithm: JwsAlgorithm = 'ES256'): Promise<Jwk> {
  if (!isJwsAlgorithm(algorithm) || isSymmetric(algorithm)) {
    throw new ConfigurationError(
      `DPoP proofs are signed with a key pair, such as ES256; got ${JSON.stringify(algorithm)}`,
    );
  }
  const parameters: AlgorithmParameters = jwsAlgorithms[algorithm];
  const rsa = parameters.keyType === 'RSA' && { modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1) };
  const pair = await crypto.subtle.generateKey({ ...parameters.importParameters, ...rsa }, true, [
    'sign',
    'verify',
  ]);
  // A key pair for every asymmetric algorithm; the overload for a name only known at run time says either.
  const { privateKey } = pair as unknown as { readonly privateKey: WebCryptoKey };
  return { ...(await crypto.subtle.exportKey('jwk', privateKey)), alg: algorithm };
}

/**
 * Prepares a private JSON Web Key for signing proofs. Its `alg` says which algorithm; without one the key type does.
 *
 * @throws {ConfigurationError} when the key is not a private key of a supported type
 */
export async function importDpopKey(jwk: Jwk): Promise<DpopKey> {
  const algorithm = algorithmOf(jwk);
  const names = publicMembers[jwk.kty ?? ''];
  if (algorithm === undefined || names === undefined) {
    throw new ConfigurationError('a DPoP key is a private JSON Web Key of type EC, OKP (Ed25519) or RSA');
  }
  const privateKey = await importKey(jwk, algorithm, 'sign');
  const publicJwk = Object.fromEntries(names.map((name) => [name, jwk[name]]));
  return { algorithm, privateKey, publicJwk, thumbprint: await thumbprintOf(publicJwk) };
}

function algorithmOf(jwk: Jwk): JwsAlgorithm | undefined {
  const names: readonly unknown[] = [jwk.alg, 'ES256', 'ES384', 'ES512', 'EdDSA', 'PS256'];
  return names.filter(isJwsAlgorithm).find((algorithm) => {
    const { keyType, curve }: AlgorithmParameters = jwsAlgorithms[algorithm];
    return keyType === jwk.kty && curve === jwk.crv && !isSymmetric(algorithm);
  });
}

/** @see RFC 7638 §3 https://www.rfc-editor.org/rfc/rfc7638#section-3 */
async function thumbprintOf(publicJwk: Jwk): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(publicJwk)));
  return encodeBase64Url(new Uint8Array(digest));
}
