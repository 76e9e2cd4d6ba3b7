import type { BasicEncoding, ClientAuthContext, MutableTokenRequest } from './client-auth.ts';

/**
 * Sends id and secret as HTTP Basic credentials. A header of the caller's own wins.
 * @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
export function clientSecretBasic({ headers }: MutableTokenRequest, context: ClientAuthContext): void {
  if (!headers.has('authorization')) headers.set('authorization', credentialsOf(context));
}

/** Credentials are the same for as long as the client is. */
const known = new WeakMap<ClientAuthContext, string>();

function credentialsOf(context: ClientAuthContext): string {
  const { clientId = '', clientSecret = '', basicEncoding } = context;
  const credentials = known.get(context) ?? basicCredentials(clientId, clientSecret, basicEncoding);
  known.set(context, credentials);
  return credentials;
}

/** The value of the Authorization header for an id and a secret. */
function basicCredentials(id: string, secret: string, encoding: BasicEncoding): string {
  const pair = encoding === 'raw' ? `${id}:${secret}` : `${formEncode(id)}:${formEncode(secret)}`;
  return `Basic ${base64(pair)}`;
}

/** Whether the two encodings of this id and secret differ, which servers that reject one of them make worth knowing. */
export function dependsOnEncoding({ clientId = '', clientSecret = '' }: ClientAuthContext): boolean {
  return formEncode(clientId) !== clientId || formEncode(clientSecret) !== clientSecret;
}

/** As `application/x-www-form-urlencoded` has it: what URLSearchParams writes for a name, without the `=` of its empty value. */
function formEncode(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1);
}

function base64(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
