/**
 * What must be remembered between sending the user away and their return: plain JSON for the user's session, kept
 * where only that user's browser brings it back (a server-side session or an encrypted cookie). It holds secrets.
 */
export interface AuthorizationTransaction {
  /** Ties the callback to this session. @see RFC 6749 §10.12 https://www.rfc-editor.org/rfc/rfc6749#section-10.12 */
  readonly state: string;
  /** PKCE verifier. @see RFC 7636 §4.1 https://www.rfc-editor.org/rfc/rfc7636#section-4.1 */
  readonly codeVerifier?: string;
  /** Ties the ID token to this session; present when OpenID Connect was asked for. */
  readonly nonce?: string;
  /** The `max_age` that was asked for: the ID token must say that the user authenticated within it. */
  readonly maxAgeSeconds?: number;
  /** The `redirect_uri` of the request, which the token request must repeat. */
  readonly redirectUri?: string;
  /** The issuer the user was sent to, when the client knows it. */
  readonly issuer?: string;
}
