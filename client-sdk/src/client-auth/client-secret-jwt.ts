import { ConfigurationError } from '../errors/configuration-error.ts';
import type { ClientAuthContext, ClientSecretJwtAuth, MutableTokenRequest } from './client-auth.ts';
import { addSignedAssertion } from './signed-assertion.ts';

/**
 * Authenticates the client with a fresh JWT signed by its secret, which itself never travels.
 *
 * @throws {ConfigurationError} when the client id or secret is missing
 * @see OpenID Connect Core §9 https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication
 */
export async function clientSecretJwt(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: ClientSecretJwtAuth,
): Promise<void> {
  if (!context.clientSecret) {
    throw new ConfigurationError(
      'clientAuth client_secret_jwt signs with the client secret: set clientSecret',
    );
  }
  const algorithm = auth.algorithm ?? 'HS256';
  await addSignedAssertion(request, context, { ...auth, algorithm, key: context.clientSecret });
}
