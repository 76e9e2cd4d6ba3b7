import { createHash, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose';

type Members = Readonly<Record<string, unknown>>;

/** The request of a proof, and other members. Undefined ones are left out. */
interface ProofOptions {
  readonly method?: string;
  readonly token?: string | undefined;
  readonly claims?: Members;
  readonly header?: Members;
}

/** A key, and proofs of its possession. */
export interface Prover {
  readonly thumbprint: string;
  readonly publicJwk: Members;
  readonly privateJwk: Members;
  prove(url: string, options?: ProofOptions): Promise<string>;
}

export async function createProver(
  nowMs: () => number,
  { alg = 'ES256' }: { readonly alg?: string } = {},
): Promise<Prover> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const publicJwk = { ...(await exportJWK(publicKey)) };
  return {
    publicJwk,
    privateJwk: { ...(await exportJWK(privateKey)) },
    thumbprint: await calculateJwkThumbprint(publicJwk),
    prove(htu, { method: htm = 'POST', token, claims, header } = {}) {
      const ath = token && createHash('sha256').update(token).digest('base64url');
      const iat = Math.floor(nowMs() / 1000);
      return new SignJWT({ jti: randomUUID(), htm, htu, iat, ath, ...claims })
        .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk: publicJwk, ...header })
        .sign(privateKey);
    },
  };
}
