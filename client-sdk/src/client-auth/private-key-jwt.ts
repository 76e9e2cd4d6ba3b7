import { ConfigurationError } from '../errors/configuration-error.ts';
import { isJwsAlgorithm, isSymmetric } from '../jwt/algorithms.ts';
import { importKey, type WebCryptoKey } from '../jwt/import-key.ts';
import type { ClientAuthContext, MutableTokenRequest, PrivateKeyJwtAuth } from './client-auth.ts';
import { addSignedAssertion } from './signed-assertion.ts';

/**
 * Imported keys by the settings they came from. Importing a PEM or JSON Web Key costs more than signing with it, and
 * the settings are the only thing that lives as long as the client; a weak map holds them no longer than that.
 */
const importedKeys = new WeakMap<PrivateKeyJwtAuth, Promise<WebCryptoKey>>();

/**
 * Authenticates the client with a fresh JWT signed by its private key; a `client_assertion` the caller already put into
 * the request is left alone.
 *
 * @throws {ConfigurationError} when the client id is missing or the key does not fit the algorithm
 * @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2
 */
export async function privateKeyJwt(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: PrivateKeyJwtAuth,
): Promise<void> {
  const { algorithm } = auth;
  if (!isJwsAlgorithm(algorithm) || isSymmetric(algorithm)) {
    throw new ConfigurationError(
      `clientAuth.algorithm must be an algorithm of a key pair, such as RS256, PS256, ES256 or EdDSA; got ${JSON.stringify(algorithm)}`,
    );
  }
  let key = importedKeys.get(auth);
  if (key === undefined) {
    key = importKey(auth.key, algorithm, 'sign');
    importedKeys.set(auth, key);
  }
  await addSignedAssertion(request, context, { ...auth, algorithm, key: await key });
}
