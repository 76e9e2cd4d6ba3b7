import type { BasicEncoding, ClientAuthContext, MutableTokenRequest } from './client-auth.ts';

/**
 * Sends id and secret as HTTP Basic credentials. A header of the caller's own wins.
 * @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
export function clientSecretBasic({ headers }: MutableTokenRequest, context: ClientAuthContext): void {
  const { clientId = '', clientSecret = '', basicEncoding } = context;
  if (!headers.has('authorization'))
    headers.set('authorization', basicCredentials(clientId, clientSecret, basicEncoding));
}

/** The value of the Authorization header for an id and a secret. */
export function basicCredentials(id: string, secret: string, encoding: BasicEncoding): string {
  const pair = encoding === 'raw' ? `${id}:${secret}` : `${formEncode(id)}:${formEncode(secret)}`;
  return `Basic ${base64(pair)}`;
}

/** Whether the two encodings of this id and secret differ, which servers that reject one of them make worth knowing. */
export function dependsOnEncoding({ clientId = '', clientSecret = '' }: ClientAuthContext): boolean {
  return formEncode(clientId) !== clientId || formEncode(clientSecret) !== clientSecret;
}

/** As `application/x-www-form-urlencoded` has it; the marks that need no encoding there and that servers may not decode stay. */
function formEncode(text: string): string {
  return encodeURIComponent(text).replace(/%20|[!'()*~]/g, (part) =>
    part === '%20' ? '+' : part === '*' ? part : `%${part.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function base64(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
