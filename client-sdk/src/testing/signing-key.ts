import { encodeBase64Url } from '../jwt/base64url.ts';

/** Signs JWTs, and shows the public half for a JWK set. */
export interface SigningKey {
  /** Public JWK with `kid`, `alg` and `use`. */
  readonly publicJwk: Readonly<Record<string, unknown>>;
  /** A compact JWS (RFC 7515 §7.1). */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256' } as const;

/** Makes a fresh ES256 key. */
export async function generateSigningKey(): Promise<SigningKey> {
  const { publicKey, privateKey } = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const kid = crypto.randomUUID();
  const publicJwk = {
    ...(await crypto.subtle.exportKey('jwk', publicKey)),
    ...{ kid, alg: 'ES256', use: 'sig' },
  };
  return {
    publicJwk,
    async sign(claims) {
      const input = `${encodeJson({ alg: 'ES256', typ: 'JWT', kid })}.${encodeJson(claims)}`;
      const bytes = new TextEncoder().encode(input);
      const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, bytes);
      return `${input}.${encodeBase64Url(new Uint8Array(signature))}`;
    },
  };
}

function encodeJson(value: unknown): string {
  return encodeBase64Url(JSON.stringify(value));
}
