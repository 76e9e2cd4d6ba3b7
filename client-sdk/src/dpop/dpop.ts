/**
 * Demonstrating proof of possession (DPoP, RFC 9449): tokens that are bound to a key.
 *
 * @module dpop
 */

import type { Fetch } from '../client-options.ts';
import { checkedClock, epochSeconds } from '../clock.ts';
import { markProven, recordProofAlgorithm } from '../http/proofs.ts';
import type { Jwk } from '../jwt/import-key.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import { type DpopKeyPair, importDpopKey } from './key.ts';
import { isNonceDemand, NonceMemory } from './nonce.ts';
import { signProof } from './proof.ts';

export type { JwsAlgorithm } from '../jwt/algorithms.ts';
export type { Jwk } from '../jwt/import-key.ts';
export type { SignFunction } from '../jwt/sign.ts';
export { type DpopKeyPair, generateDpopKey } from './key.ts';

/** Options of `createDpop`. */
export interface DpopOptions {
  /**
   * A private JSON Web Key of type EC, OKP (Ed25519) or RSA, as `generateDpopKey` makes it, or a
   * key pair whose private key cannot be exported.
   */
  readonly key: Jwk | DpopKeyPair;
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /** Epoch seconds. Default from `Date`. */
  readonly now?: () => number;
}

const optionNames: OptionNames<DpopOptions> = { key: 1, fetch: 1, now: 1 };

/** A `fetch` that proves possession of a key. */
export interface Dpop {
  /**
   * The `fetch` of a Client. Adds a proof to requests with an `Authorization: DPoP` header and to
   * POSTs to the authorization server; requests with other tokens, and plain GETs, are not changed.
   * The Client rejects it if the server does not list the key's algorithm; it does not see through
   * a function that wraps this one.
   */
  readonly fetch: Fetch;
  /**
   * SHA-256 thumbprint of the public key. The parameter `dpop_jkt` binds an authorization code to
   * it.
   */
  readonly thumbprint: string;
}

/**
 * Makes tokens sender-constrained (DPoP): every request is signed with a key, without which a
 * stolen token cannot be used. Nonces of servers are cached by origin. A request that is rejected
 * because of its nonce is sent again once with a new proof, unless its body is a stream; a signed
 * client assertion is made again. A token response that says Bearer is rejected, because its token
 * is not bound to the key.
 *
 * @example
 * ```ts
 * const dpop = await createDpop({ key: await generateDpopKey() }); const client = new Client({
 * clientId: 'app', site: 'https://as.example', fetch: dpop.fetch });
 * ```
 * @throws {ConfigurationError} if the key is not a private key of a supported type
 * @see RFC 9449 https://www.rfc-editor.org/rfc/rfc9449
 */
export async function createDpop(options: DpopOptions): Promise<Dpop> {
  assertKnownOptions('createDpop', options, optionNames);
  const { key: jwk, fetch: send = globalFetch, now = epochSeconds } = options;
  const key = await importDpopKey(jwk);
  const nonces = new NonceMemory();

  async function sendWithProof(
    url: string,
    init: RequestInit,
    accessToken: string | undefined,
  ): Promise<Response> {
    const { origin } = new URL(url);
    const nonce = nonces.get(origin);
    const headers = new Headers(init.headers);
    headers.set(
      'dpop',
      await signProof(key, {
        method: init.method ?? 'GET',
        url,
        now: checkedClock(now)(),
        accessToken,
        nonce,
      }),
    );
    const response = await send(url, { ...init, headers });
    nonces.store(origin, response.headers.get('dpop-nonce'));
    markProven(response);
    return response;
  }

  const dpop: Dpop = {
    thumbprint: key.thumbprint,
    async fetch(url, init = {}) {
      const credentials = new Headers(init.headers).get('authorization');
      if (!isToBeProven(init.method ?? 'GET', credentials)) return await send(url, init);
      const accessToken = dpopToken(credentials);
      const response = await sendWithProof(url, init, accessToken);
      if (!isReplayable(init.body) || !(await isNonceDemand(response))) return response;
      await response.body?.cancel();
      return await sendWithProof(url, init, accessToken);
    },
  };
  recordProofAlgorithm(dpop.fetch, key.algorithm);
  return dpop;
}

function isToBeProven(method: string, credentials: string | null): boolean {
  if (dpopToken(credentials) !== undefined) return true;
  return method.toUpperCase() === 'POST' && !credentials?.toLowerCase().startsWith('bearer ');
}

/**
 * A stream is consumed, and a signed assertion is accepted only once: the Client repeats such a
 * request.
 */
function isReplayable(body: RequestInit['body']): boolean {
  return (
    !(body instanceof ReadableStream) && !(typeof body === 'string' && body.includes('client_assertion='))
  );
}

function dpopToken(credentials: string | null): string | undefined {
  return credentials?.slice(0, 5).toLowerCase() === 'dpop ' ? credentials.slice(5) : undefined;
}

async function globalFetch(url: string, init: RequestInit): Promise<Response> {
  return await globalThis.fetch(url, init);
}
