/**
 * Signature algorithms of other issuers. Asymmetric only: with HMAC, each service that verifies
 * tokens could issue them, and a public key could be taken for a secret.
 *
 * @see RFC 7518 §3.1, RFC 8037 §3.1, RFC 9864 §2.2
 */
export const algorithmNames = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const),
  ...(['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const),
] as const;

/** Value of `alg` in a JOSE header. */
export type Algorithm = (typeof algorithmNames)[number];
