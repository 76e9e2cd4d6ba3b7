import { constants, type KeyObject, type SignKeyObjectInput, verify } from 'node:crypto';
import type { Algorithm } from '@tollgate/policies/routes-file/algorithms';

interface AlgorithmDefinition {
  readonly kty: 'RSA' | 'EC' | 'OKP';
  readonly crv?: string;
  readonly hash: string | undefined;
  readonly options?: Omit<SignKeyObjectInput, 'key'>;
}

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
/** The ECDSA signature format of JWS. */
const ecdsa = { dsaEncoding: 'ieee-p1363' } as const;

const algorithms: Readonly<Record<Algorithm, AlgorithmDefinition>> = {
  RS256: { kty: 'RSA', hash: 'sha256' },
  RS384: { kty: 'RSA', hash: 'sha384' },
  RS512: { kty: 'RSA', hash: 'sha512' },
  PS256: { kty: 'RSA', hash: 'sha256', options: pss },
  PS384: { kty: 'RSA', hash: 'sha384', options: pss },
  PS512: { kty: 'RSA', hash: 'sha512', options: pss },
  ES256: { kty: 'EC', crv: 'P-256', hash: 'sha256', options: ecdsa },
  ES384: { kty: 'EC', crv: 'P-384', hash: 'sha384', options: ecdsa },
  ES512: { kty: 'EC', crv: 'P-521', hash: 'sha512', options: ecdsa },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', hash: undefined },
  Ed25519: { kty: 'OKP', crv: 'Ed25519', hash: undefined },
};

/** Whether a key of this type and curve can have the algorithm. */
export function fitsAlgorithm(algorithm: Algorithm, kty: string, crv: string | undefined): boolean {
  const definition = algorithms[algorithm];
  return definition.kty === kty && (definition.crv === undefined || definition.crv === crv);
}

/** Synchronous, as for own tokens: libuv's threads are busy with password hashes. */
export function verifySignature(
  algorithm: Algorithm,
  key: KeyObject,
  signed: { readonly input: string; readonly signature: Buffer },
): boolean {
  const { hash, options } = algorithms[algorithm];
  return verify(hash, Buffer.from(signed.input), { key, ...options }, signed.signature);
}
