import { encodeBase64Url } from '../encoding.ts';
import { ConfigurationError } from '../errors.ts';
import { type JwsAlgorithm, jwsAlgorithms } from './algorithms.ts';
import { importKey, type KeyInput } from './import-key.ts';

/**
 * Signs bytes where the private key is, such as in a KMS. Returns the signature in the form of JWS:
 * for ECDSA both numbers side by side (64 bytes for ES256), where a KMS may return DER.
 * @see RFC 7518 §3.4 https://www.rfc-editor.org/rfc/rfc7518#section-3.4
 */
export type SignFunction = (data: Uint8Array<ArrayBuffer>) => Uint8Array | Promise<Uint8Array>;

/** How a JWT is signed. */
export interface SignJwtOptions {
  /** JWS algorithm; becomes the `alg` header. */
  readonly algorithm: JwsAlgorithm;
  /**
   * Private key, or shared secret for HMAC, or a function. Import a key once with `importKey` to
   * sign often.
   */
  readonly key: KeyInput | SignFunction;
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
  const fullHeader = { typ: 'JWT', ...header, alg: algorithm, ...(keyId !== undefined && { kid: keyId }) };
  const signingInput = `${encodeBase64Url(JSON.stringify(fullHeader))}.${encodeBase64Url(JSON.stringify(claims))}`;
  const data = textEncoder.encode(signingInput);
  const signature = await (typeof key === 'function'
    ? callSigner(key, algorithm, data)
    : signWithKey(key, algorithm, data));
  return `${signingInput}.${encodeBase64Url(signature)}`;
}

async function signWithKey(
  key: KeyInput,
  algorithm: JwsAlgorithm,
  data: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const signingKey = await importKey(key, algorithm, 'sign');
  return new Uint8Array(await crypto.subtle.sign(jwsAlgorithms[algorithm].signParameters, signingKey, data));
}

/** Bytes of the signatures of elliptic curves. */
const ecSignatureBytes: Readonly<Record<string, number>> = { ES256: 64, ES384: 96, ES512: 132 };

async function callSigner(
  sign: SignFunction,
  algorithm: JwsAlgorithm,
  data: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  let signature: unknown;
  try {
    signature = await sign(data);
  } catch (cause) {
    throw new ConfigurationError('the function that signs failed; see cause', { cause, retryable: true });
  }
  const length = ecSignatureBytes[algorithm];
  if (!(signature instanceof Uint8Array) || (length !== undefined && signature.length !== length)) {
    const form =
      length === undefined ? 'a Uint8Array' : `a Uint8Array of ${length} bytes; convert it from DER`;
    throw new ConfigurationError(`the function that signs with ${algorithm} must return ${form}`);
  }
  return signature;
}
