import { clientAssertion } from './client-assertion.ts';
import type {
  ClientAuth,
  ClientAuthContext,
  ClientAuthFunction,
  MutableTokenRequest,
} from './client-auth.ts';
import { clientSecretJwt } from './client-secret-jwt.ts';
import { privateKeyJwt } from './private-key-jwt.ts';

/**
 * Writes an assertion into a request, signed here or by someone else.
 * @throws {ConfigurationError} when what the method needs is missing.
 */
export async function authenticateByAssertion(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: Exclude<ClientAuth, string | ClientAuthFunction>,
): Promise<void> {
  if (auth.method === 'private_key_jwt') await privateKeyJwt(request, context, auth);
  else if (auth.method === 'client_secret_jwt') await clientSecretJwt(request, context, auth);
  else await clientAssertion(request, context, auth);
}
