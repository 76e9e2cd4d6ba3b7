import type { ClientAuthContext, MutableTokenRequest } from './client-auth.ts';
import { clientIdOnly } from './client-id-only.ts';

/**
 * Sends id and secret among the parameters, where there are any. Parameters of the caller's own win.
 * @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
export function clientSecretPost(request: MutableTokenRequest, context: ClientAuthContext): void {
  clientIdOnly(request, context);
  const { clientSecret } = context;
  if (clientSecret !== undefined && !request.body.has('client_secret'))
    request.body.set('client_secret', clientSecret);
}
