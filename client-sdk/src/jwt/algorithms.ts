/** The WebCrypto parameters of a JWS algorithm. */
export interface AlgorithmParameters {
  /** The `kty` of its JSON Web Keys. */
  readonly keyType: 'oct' | 'RSA' | 'EC' | 'OKP';
  /** The `crv` of its JSON Web Keys of type EC or OKP. */
  readonly curve?: string;
  /** First argument of `importKey`'s algorithm. */
  readonly importParameters: {
    readonly name: string;
    readonly hash?: string;
    readonly namedCurve?: string;
  };
  /** First argument of `sign` and `verify`. */
  readonly signParameters: { readonly name: string; readonly hash?: string; readonly saltLength?: number };
}

/**
 * The supported JWS algorithms: those of RFC 7518 §3.1 except `none`, and EdDSA with Ed25519.
 * @see RFC 7518 §3.1 https://www.rfc-editor.org/rfc/rfc7518#section-3.1
 * @see RFC 8037 §3.1 https://www.rfc-editor.org/rfc/rfc8037#section-3.1
 */
export const jwsAlgorithms = {
  HS256: hmac('SHA-256'),
  HS384: hmac('SHA-384'),
  HS512: hmac('SHA-512'),
  RS256: rsa('SHA-256'),
  RS384: rsa('SHA-384'),
  RS512: rsa('SHA-512'),
  PS256: rsaPss('SHA-256', 32),
  PS384: rsaPss('SHA-384', 48),
  PS512: rsaPss('SHA-512', 64),
  ES256: ecdsa('SHA-256', 'P-256'),
  ES384: ecdsa('SHA-384', 'P-384'),
  ES512: ecdsa('SHA-512', 'P-521'),
  EdDSA: ed25519(),
  Ed25519: ed25519(),
} as const satisfies Record<string, AlgorithmParameters>;

/** Name of a supported JWS algorithm, as in the `alg` header. */
export type JwsAlgorithm = keyof typeof jwsAlgorithms;

/** Whether `name` is a supported JWS algorithm (`none` never is). */
export function isJwsAlgorithm(name: unknown): name is JwsAlgorithm {
  return typeof name === 'string' && Object.hasOwn(jwsAlgorithms, name);
}

/** Whether the algorithm uses a shared secret (HMAC). */
export function isSymmetric(algorithm: JwsAlgorithm): boolean {
  return jwsAlgorithms[algorithm].keyType === 'oct';
}

function hmac(hash: string): AlgorithmParameters {
  return { keyType: 'oct', importParameters: { name: 'HMAC', hash }, signParameters: { name: 'HMAC' } };
}

function rsa(hash: string): AlgorithmParameters {
  const name = 'RSASSA-PKCS1-v1_5';
  return { keyType: 'RSA', importParameters: { name, hash }, signParameters: { name } };
}

/**
 * The salt is as long as the hash.
 * @see RFC 7518 §3.5 https://www.rfc-editor.org/rfc/rfc7518#section-3.5
 */
function rsaPss(hash: string, saltLength: number): AlgorithmParameters {
  const name = 'RSA-PSS';
  return { keyType: 'RSA', importParameters: { name, hash }, signParameters: { name, saltLength } };
}

function ecdsa(hash: string, namedCurve: string): AlgorithmParameters {
  const name = 'ECDSA';
  return {
    keyType: 'EC',
    curve: namedCurve,
    importParameters: { name, namedCurve },
    signParameters: { name, hash },
  };
}

function ed25519(): AlgorithmParameters {
  const name = 'Ed25519';
  return { keyType: 'OKP', curve: name, importParameters: { name }, signParameters: { name } };
}
