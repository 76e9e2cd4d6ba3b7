import type { ClientAuthContext, MutableTokenRequest } from './client-auth.ts';

/**
 * Names the client among the parameters: all that a public client says of itself, and all that a client says whose TLS
 * certificate says the rest.
 * @see RFC 6749 §3.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-3.2.1
 * @see RFC 8705 §2 https://www.rfc-editor.org/rfc/rfc8705#section-2
 */
export function clientIdOnly({ body }: MutableTokenRequest, { clientId }: ClientAuthContext): void {
  if (clientId !== undefined && !body.has('client_id')) body.set('client_id', clientId);
}
