import { decodeBase64 } from '../encoding.ts';
import { ConfigurationError } from '../errors.ts';
import { type AlgorithmParameters, isJwsAlgorithm, type JwsAlgorithm, jwsAlgorithms } from './algorithms.ts';

/**
 * DER of `INTEGER 0, SEQUENCE { OID rsaEncryption, NULL }`, which precedes an RSA key in PKCS#8.
 */
const rsaPrefix = [
  0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/** The possible `-----BEGIN …-----` lines, and how to convert unsupported forms. */
const refusals: Readonly<Record<string, string>> = {
  'ENCRYPTED PRIVATE KEY':
    'the private key is encrypted; decrypt it first (openssl pkcs8 -in key.pem -out plain.pem, or node:crypto createPrivateKey with its passphrase)',
  'EC PRIVATE KEY':
    'the private key is in SEC 1 form; convert it with openssl pkcs8 -topk8 -nocrypt -in key.pem',
  CERTIFICATE: 'a certificate is not a key; extract it with openssl x509 -pubkey -noout -in cert.pem',
};

/** The DER bytes of a PEM key and their WebCrypto format. */
interface PemKey {
  readonly format: 'pkcs8' | 'spki';
  readonly der: Uint8Array<ArrayBuffer>;
}

function isPem(text: string): boolean {
  return text.includes('-----BEGIN ');
}

/**
 * Reads the first key of a PEM text: PKCS#8 (`PRIVATE KEY`), SPKI (`PUBLIC KEY`) or PKCS#1 (`RSA
 * PRIVATE KEY`), which is converted to PKCS#8 for WebCrypto.
 *
 * @throws {ConfigurationError} for other forms, saying how to convert them
 * @see RFC 7468 https://www.rfc-editor.org/rfc/rfc7468
 */
function parsePem(pem: string): PemKey {
  const match = /-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/.exec(pem);
  const label = match?.[1] ?? '';
  const body = match?.[2] ?? '';
  // An encrypted PKCS#1 or SEC 1 key has header lines, which are not base64.
  if (body.includes('Proc-Type:')) throw new ConfigurationError(`key: ${refusals['ENCRYPTED PRIVATE KEY']}`);
  const der = match === null ? undefined : decodeBase64(body);
  if (der !== undefined) {
    if (label === 'PRIVATE KEY') return { format: 'pkcs8', der };
    if (label === 'PUBLIC KEY') return { format: 'spki', der };
    if (label === 'RSA PRIVATE KEY') return { format: 'pkcs8', der: wrapRsaKey(der) };
  }
  const reason =
    refusals[label] ?? 'expected a PEM text with a PRIVATE KEY (PKCS#8) or PUBLIC KEY (SPKI) block';
  throw new ConfigurationError(`key: ${reason}`);
}

function wrapRsaKey(pkcs1: Uint8Array): Uint8Array<ArrayBuffer> {
  return derElement(0x30, [...rsaPrefix, ...derElement(0x04, [...pkcs1])]);
}

function derElement(tag: number, content: readonly number[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([tag, ...derLength(content.length), ...content]);
}

function derLength(length: number): number[] {
  if (length < 0x80) return [length];
  if (length < 0x100) return [0x81, length];
  return [0x82, length >> 8, length & 0xff];
}

/** A WebCrypto key; the type resolves with and without the DOM library. */
export type WebCryptoKey = InstanceType<typeof CryptoKey>;

/**
 * A JSON Web Key: an object with `kty` and the members of its type.
 * @see RFC 7517 §4 https://www.rfc-editor.org/rfc/rfc7517#section-4
 */
export interface Jwk {
  readonly kty?: string;
  readonly kid?: string;
  readonly alg?: string;
  readonly use?: string;
  readonly key_ops?: readonly string[];
  readonly crv?: string;
  readonly k?: string;
  readonly n?: string;
  readonly e?: string;
  readonly d?: string;
  readonly p?: string;
  readonly q?: string;
  readonly dp?: string;
  readonly dq?: string;
  readonly qi?: string;
  readonly x?: string;
  readonly y?: string;
  readonly [member: string]: unknown;
}

/**
 * A key: a WebCrypto key; a JSON Web Key; a string, which is PEM for a key pair (PKCS#8 or PKCS#1
 * private, SPKI public) and the shared secret for HMAC; or the bytes of a shared secret.
 */
export type KeyInput = WebCryptoKey | Jwk | Uint8Array<ArrayBuffer> | string;

/**
 * Minimum size of RSA keys.
 * @see RFC 7518 §3.3 https://www.rfc-editor.org/rfc/rfc7518#section-3.3
 */
const MINIMUM_RSA_BITS = 2048;

const textEncoder = new TextEncoder();

/**
 * Imports a key for one algorithm and one use. Importing costs more than signing: keep the result,
 * which this function accepts, too.
 *
 * @throws {ConfigurationError} if the key does not fit the algorithm, is malformed, or is too weak
 */
export async function importKey(
  key: KeyInput,
  algorithm: JwsAlgorithm,
  usage: 'sign' | 'verify',
): Promise<WebCryptoKey> {
  if (!isJwsAlgorithm(algorithm)) {
    const known = Object.keys(jwsAlgorithms).join(', ');
    throw new ConfigurationError(`algorithm must be one of ${known}; got ${JSON.stringify(algorithm)}`);
  }
  const parameters: AlgorithmParameters = jwsAlgorithms[algorithm];
  const imported = isCryptoKey(key) ? key : await importForm(key, algorithm, parameters, usage);
  assertSuitable(imported, algorithm, parameters, usage);
  return imported;
}

/** Whether a value is a WebCrypto key. */
export function isCryptoKey(key: unknown): key is WebCryptoKey {
  // Test runners and frames have CryptoKey classes of their own.
  return Object.prototype.toString.call(key) === '[object CryptoKey]';
}

async function importForm(
  key: Exclude<KeyInput, WebCryptoKey>,
  algorithm: JwsAlgorithm,
  parameters: AlgorithmParameters,
  usage: 'sign' | 'verify',
): Promise<WebCryptoKey> {
  try {
    if (parameters.keyType === 'oct' && (typeof key === 'string' || key instanceof Uint8Array)) {
      return await importSecret(key, algorithm, parameters, usage);
    }
    if (typeof key === 'string') return await importPem(key, algorithm, parameters, usage);
    if (key instanceof Uint8Array || typeof key !== 'object' || key === null) {
      throw new ConfigurationError(`key: ${algorithm} needs a CryptoKey, a JSON Web Key or a PEM text`);
    }
    return await importJwk(key, algorithm, parameters, usage);
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    throw new ConfigurationError(`key: not usable with ${algorithm}; check its type, curve and encoding`, {
      cause: error,
    });
  }
}

async function importSecret(
  secret: string | Uint8Array<ArrayBuffer>,
  algorithm: JwsAlgorithm,
  parameters: AlgorithmParameters,
  usage: 'sign' | 'verify',
): Promise<WebCryptoKey> {
  if (typeof secret === 'string' && isPem(secret)) {
    throw new ConfigurationError(`key: ${algorithm} signs with a shared secret; got a PEM text`);
  }
  if (secret.length === 0) throw new ConfigurationError(`key: the secret for ${algorithm} is empty`);
  const bytes = typeof secret === 'string' ? textEncoder.encode(secret) : secret;
  return await crypto.subtle.importKey('raw', bytes, parameters.importParameters, false, [usage]);
}

async function importPem(
  pem: string,
  algorithm: JwsAlgorithm,
  parameters: AlgorithmParameters,
  usage: 'sign' | 'verify',
): Promise<WebCryptoKey> {
  const { format, der } = parsePem(pem);
  if (format !== (usage === 'sign' ? 'pkcs8' : 'spki')) {
    const needed = usage === 'sign' ? 'private' : 'public';
    throw new ConfigurationError(`key: to ${usage} with ${algorithm} the ${needed} key is needed`);
  }
  return await crypto.subtle.importKey(format, der, parameters.importParameters, false, [usage]);
}

async function importJwk(
  jwk: Jwk,
  algorithm: JwsAlgorithm,
  parameters: AlgorithmParameters,
  usage: 'sign' | 'verify',
): Promise<WebCryptoKey> {
  if (jwk.kty !== parameters.keyType) {
    throw new ConfigurationError(`key: ${algorithm} needs a JSON Web Key with kty ${parameters.keyType}`);
  }
  if (usage === 'sign' && parameters.keyType !== 'oct' && jwk.d === undefined) {
    throw new ConfigurationError(
      `key: to sign with ${algorithm} the private JSON Web Key (with d) is needed`,
    );
  }
  // Without `alg`, `use` and `key_ops`: servers set them inconsistently (alg RSA-OAEP on a signing
  // key, key_ops without sign), and engines refuse different ones.
  const { kty, crv, k, n, e, d, p, q, dp, dq, qi, x, y } = jwk;
  const members =
    usage === 'sign' ? { kty, crv, k, n, e, d, p, q, dp, dq, qi, x, y } : { kty, crv, k, n, e, x, y };
  const present = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
  return await crypto.subtle.importKey('jwk', present, parameters.importParameters, false, [usage]);
}

function assertSuitable(
  key: WebCryptoKey,
  algorithm: JwsAlgorithm,
  parameters: AlgorithmParameters,
  usage: 'sign' | 'verify',
): void {
  if (!key.usages.includes(usage)) {
    throw new ConfigurationError(
      `key: the CryptoKey does not allow "${usage}"; it allows ${key.usages.join(', ')}`,
    );
  }
  const { name, hash, namedCurve, modulusLength } = describe(key);
  const { importParameters } = parameters;
  const fits =
    name === importParameters.name &&
    (hash === undefined || hash === importParameters.hash) &&
    (namedCurve === undefined || namedCurve === importParameters.namedCurve);
  if (!fits) {
    const actual = [name, hash, namedCurve].filter((part) => part !== undefined).join(' ');
    throw new ConfigurationError(`key: the CryptoKey is for ${actual}, which is not ${algorithm}`);
  }
  if (modulusLength !== undefined && modulusLength < MINIMUM_RSA_BITS) {
    throw new ConfigurationError(
      `key: RSA keys need at least ${MINIMUM_RSA_BITS} bits; this one has ${modulusLength}`,
    );
  }
}

function describe(key: WebCryptoKey): {
  name: string;
  hash?: string;
  namedCurve?: string;
  modulusLength?: number;
} {
  // The further members depend on the algorithm's name.
  const algorithm = key.algorithm as {
    name: string;
    hash?: { name: string };
    namedCurve?: string;
    modulusLength?: number;
  };
  return {
    name: algorithm.name,
    ...(algorithm.hash && { hash: algorithm.hash.name }),
    ...(algorithm.namedCurve !== undefined && { namedCurve: algorithm.namedCurve }),
    ...(algorithm.modulusLength !== undefined && { modulusLength: algorithm.modulusLength }),
  };
}
