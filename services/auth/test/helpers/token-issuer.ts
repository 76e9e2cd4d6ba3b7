import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import type t from 'tap';

type Claims = Readonly<Record<string, unknown>>;

/** An identity provider on loopback whose keys and failures a test controls. */
export interface TokenIssuer {
  /** The `iss` of its tokens. */
  readonly issuer: string;
  /** Paths of the requests so far. */
  readonly requests: readonly string[];
  /** Signs a token of `sub: ada` for the audience `orders`, with the newest key. */
  sign(claims?: Claims, header?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Signs with another key from now on, and publishes it. The previous one is withdrawn. */
  rotate(kid: string): Promise<void>;
  /** How it answers: `up`, with `down` 503, or with `slow` not at all. */
  become(state: 'up' | 'down' | 'slow'): void;
  /** Replaces its documents by path. */
  publish(path: string, document: unknown): void;
}

export interface TokenIssuerOptions {
  readonly alg?: string;
  /** Path of the issuer. Default none. */
  readonly path?: string;
  /** The time of tokens, in milliseconds. */
  readonly nowMs?: () => number;
}

/** Starts an issuer; stopped when the test ends. */
export async function startTokenIssuer(
  test: Pick<typeof t, 'teardown'>,
  { alg = 'RS256', path = '', nowMs = Date.now }: TokenIssuerOptions = {},
): Promise<TokenIssuer> {
  const documents = new Map<string, unknown>();
  const requests: string[] = [];
  let state: Parameters<TokenIssuer['become']>[0] = 'up';
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    if (state === 'slow') return;
    const document = documents.get(request.url ?? '');
    const status = state === 'down' ? 503 : document === undefined ? 404 : 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof document === 'string' ? document : JSON.stringify(document ?? {}));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
  const issuer = `${origin}${path}`;
  let key = await makeKey(alg, 'key-1');
  const publishKey = () => documents.set('/jwks', { keys: [key.jwk] });
  documents.set(`${path}/.well-known/openid-configuration`, { issuer, jwks_uri: `${origin}/jwks` });
  publishKey();
  return {
    issuer,
    requests,
    sign: (claims, header) => {
      const seconds = Math.floor(nowMs() / 1000);
      return new SignJWT({
        ...{ iss: issuer, aud: 'orders', sub: 'ada', iat: seconds, exp: seconds + 300 },
        ...claims,
      })
        .setProtectedHeader({ alg, kid: key.jwk.kid, typ: 'JWT', ...header })
        .sign(key.privateKey);
    },
    rotate: async (kid) => {
      key = await makeKey(alg, kid);
      publishKey();
    },
    become: (next) => {
      state = next;
    },
    publish: (at, document) => void documents.set(at, document),
  };
}

interface SigningKey {
  readonly privateKey: Parameters<SignJWT['sign']>[0];
  readonly jwk: JWK & { readonly kid: string };
}

async function makeKey(alg: string, kid: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}
