import { JwtError } from '../errors.ts';
import { quote } from '../text.ts';
import { isJwsAlgorithm, type JwsAlgorithm, jwsAlgorithms } from './algorithms.ts';
import { type DecodedJwt, decodeJwt } from './decode.ts';
import type { WebCryptoKey } from './import-key.ts';
import type { KeySource } from './key-sources.ts';

/** How a JWT's signature is verified. */
export interface VerifyJwtOptions {
  readonly keys: KeySource;
  /** The accepted `alg` values. */
  readonly algorithms: readonly JwsAlgorithm[];
}

const textEncoder = new TextEncoder();

/**
 * Verifies the signature of a JWT and returns its header and claims, which are not validated. If no
 * known key fits, the key source reloads once.
 *
 * @throws {JwtError} with the `reason`
 * @throws {OAuthClientError} from the key source
 * @see RFC 7515 §5.2 https://www.rfc-editor.org/rfc/rfc7515#section-5.2
 */
export async function verifyJwt(
  jwt: string,
  { keys, algorithms }: VerifyJwtOptions,
): Promise<Pick<DecodedJwt, 'header' | 'claims'>> {
  const decoded = decode(jwt);
  const algorithm = acceptedAlgorithm(decoded.header, algorithms);
  const { kid } = decoded.header;
  const wanted = { algorithm, keyId: typeof kid === 'string' ? kid : undefined };

  const known = await keys.find(wanted);
  let signed = await isSignedByAny(decoded, algorithm, known);
  if (!signed) {
    const reloaded = await keys.find(wanted, { reload: true });
    const unseen = reloaded.filter((key) => !known.includes(key));
    if (known.length + unseen.length === 0) throw noKey(wanted.keyId, algorithm);
    signed = await isSignedByAny(decoded, algorithm, unseen);
  }
  if (!signed)
    throw new JwtError('signature', 'the signature of the JWT does not match any key of its issuer');
  return { header: decoded.header, claims: decoded.claims };
}

function decode(jwt: string): DecodedJwt {
  const decoded = decodeJwt(jwt);
  if (decoded !== undefined) return decoded;
  if (jwt.split('.', 6).length === 5) {
    throw new JwtError(
      'encrypted',
      'the JWT is encrypted (JWE), which is not supported; register the client for signed tokens',
    );
  }
  throw new JwtError('malformed', 'not a JWT: expected three base64url parts, the first two JSON objects');
}

function acceptedAlgorithm(header: DecodedJwt['header'], algorithms: readonly JwsAlgorithm[]): JwsAlgorithm {
  const { alg, crit } = header;
  if (crit !== undefined)
    throw new JwtError('malformed', 'the JWT has critical header extensions, of which none is known');
  if (isJwsAlgorithm(alg) && algorithms.includes(alg)) return alg;
  throw new JwtError('algorithm', `the JWT is signed with ${quote(alg)}; accepted: ${algorithms.join(', ')}`);
}

async function isSignedByAny(
  { signature, signingInput }: DecodedJwt,
  algorithm: JwsAlgorithm,
  keys: readonly WebCryptoKey[],
): Promise<boolean> {
  const data = textEncoder.encode(signingInput);
  for (const key of keys) {
    if (await crypto.subtle.verify(jwsAlgorithms[algorithm].signParameters, key, signature, data))
      return true;
  }
  return false;
}

function noKey(keyId: string | undefined, algorithm: JwsAlgorithm): JwtError {
  const which = keyId === undefined ? '' : ` and kid ${quote(keyId)}`;
  return new JwtError('key_not_found', `the issuer's key set has no key for ${algorithm}${which}`);
}
