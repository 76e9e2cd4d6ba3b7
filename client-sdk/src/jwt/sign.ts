import { encodeBase64Url } from '../encoding.ts';
import { type JwsAlgorithm, jwsAlgorithms } from './algorithms.ts';
import { importKey, type KeyInput } from './import-key.ts';

/** How a JWT is signed. */
export interface SignJwtOptions {
  /** JWS algorithm; becomes the `alg` header. */
  readonly algorithm: JwsAlgorithm;
  /** Private key, or shared secret for HMAC. Import it once with `importKey` to sign often. */
  readonly key: KeyInput;
  /** `kid` header; omitted if undefined. */
  readonly keyId?: string | undefined;
  /**
   * Further header members, such as `typ` or `jwk`; `alg` and `kid` take precedence. `typ` is `JWT`
   * by default.
   */
  readonly header?: Readonly<Record<string, unknown>> | undefined;
}

const textEncoder = new TextEncoder();

/**
 * Signs claims, which are not changed or checked, as a JWT in compact form.
 *
 * @throws {ConfigurationError} if the key does not fit the algorithm
 * @see RFC 7515 §7.1 https://www.rfc-editor.org/rfc/rfc7515#section-7.1
 * @see RFC 7519 §7.1 https://www.rfc-editor.org/rfc/rfc7519#section-7.1
 */
export async function signJwt(
  claims: Readonly<Record<string, unknown>>,
  { algorithm, key, keyId, header }: SignJwtOptions,
): Promise<string> {
  const signingKey = await importKey(key, algorithm, 'sign');
  const fullHeader = { typ: 'JWT', ...header, alg: algorithm, ...(keyId !== undefined && { kid: keyId }) };
  const signingInput = `${encodeBase64Url(JSON.stringify(fullHeader))}.${encodeBase64Url(JSON.stringify(claims))}`;
  const signature = await crypto.subtle.sign(
    jwsAlgorithms[algorithm].signParameters,
    signingKey,
    textEncoder.encode(signingInput),
  );
  return `${signingInput}.${encodeBase64Url(new Uint8Array(signature))}`;
}
