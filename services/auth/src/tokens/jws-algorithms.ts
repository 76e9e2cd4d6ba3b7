import { createHmac, type KeyObject, sign, timingSafeEqual, verify } from 'node:crypto';

/** How a signature is made and checked, and what kind of key that takes. */
interface JwsAlgorithmDefinition {
  readonly kty: 'oct' | 'RSA' | 'EC' | 'OKP';
  readonly crv?: string;
  sign(input: string, key: KeyObject): Buffer;
  verify(input: string, key: KeyObject, signature: Buffer): boolean;
}

/**
 * Signature algorithms of access tokens, in `node:crypto`'s synchronous calls: WebCrypto runs on the threads that password hashes
 * occupy, where a check that takes microseconds would wait for hundreds of milliseconds.
 *
 * @see RFC 7518 §3.1 https://www.rfc-editor.org/rfc/rfc7518#section-3.1
 */
export const jwsAlgorithms = {
  HS256: hmac('sha256'),
  RS256: asymmetric({ kty: 'RSA', hash: 'sha256' }),
  RS512: asymmetric({ kty: 'RSA', hash: 'sha512' }),
  ES256: asymmetric({ kty: 'EC', hash: 'sha256', crv: 'P-256' }),
  ES512: asymmetric({ kty: 'EC', hash: 'sha512', crv: 'P-521' }),
  EdDSA: asymmetric({ kty: 'OKP', hash: undefined, crv: 'Ed25519' }),
} as const satisfies Record<string, JwsAlgorithmDefinition>;

/** Value of `alg` in a JOSE header. */
export type JwsAlgorithm = keyof typeof jwsAlgorithms;

function hmac(hash: string): JwsAlgorithmDefinition {
  const digest = (input: string, key: KeyObject): Buffer => createHmac(hash, key).update(input).digest();
  return {
    kty: 'oct',
    sign: digest,
    verify(input, key, signature) {
      const expected = digest(input, key);
      return expected.length === signature.length && timingSafeEqual(expected, signature);
    },
  };
}

function asymmetric(options: {
  readonly kty: 'RSA' | 'EC' | 'OKP';
  readonly hash: string | undefined;
  readonly crv?: string;
}): JwsAlgorithmDefinition {
  const { kty, hash, crv } = options;
  // JWS has the two numbers of an ECDSA signature side by side; other keys ignore this.
  const dsaEncoding = 'ieee-p1363';
  return {
    kty,
    ...(crv !== undefined && { crv }),
    sign: (input, key) => sign(hash, Buffer.from(input), { key, dsaEncoding }),
    verify: (input, key, signature) => verify(hash, Buffer.from(input), { key, dsaEncoding }, signature),
  };
}
