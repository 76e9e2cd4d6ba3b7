/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Tokens that are renewed before they expire, once for all callers and processes.
 *
 * @module
 */

import type { Client } from './client.ts';
import { Stopwatch } from './clock.ts';
import { AbortError, ConfigurationError, OAuthError, TokenUnavailableError } from './errors.ts';
import { observe } from './hooks.ts';
import type { WireParams } from './http/options.ts';
import { parseWwwAuthenticate } from './http/response-error.ts';
import type { JsonObject, KeyCase } from './key-case.ts';
import { copyPlain } from './objects.ts';
import { assertKnownOptions, type OptionNames } from './option-names.ts';
import { assertTimer, type Sleep, sleep } from './timers.ts';
import type { AccessToken } from './tokens/access-token.ts';
import type { AccessTokenOptions } from './tokens/options.ts';
import {
  type AcquireToken,
  type Renewal,
  type RenewalContext,
  renewBeforeSeconds,
  renewToken,
  restoreToken,
  type UnsavedToken,
} from './tokens/renewal.ts';
import { ConflictBackoff, guardedStore, memoryTokenStore, type TokenStore } from './tokens/token-store.ts';

export type { AcquireToken } from './tokens/renewal.ts';
export type {
  SetOutcome,
  TokenLease,
  TokenRecord,
  TokenStore,
  VersionedRecord,
} from './tokens/token-store.ts';
export { memoryTokenStore } from './tokens/token-store.ts';

/** The `init` of `fetch`. The body may be a function that is called for each attempt. */
export interface ReplayableInit extends Omit<RequestInit, 'body'> {
  body?: RequestInit['body'] | (() => RequestInit['body']);
}

/** The `init` of one attempt. */
function initOfAttempt(init: ReplayableInit | undefined): RequestInit | undefined {
  if (init === undefined) return undefined;
  const { body, ...rest } = init;
  if (body === undefined) return rest;
  return { ...rest, body: (typeof body === 'function' ? body() : body) ?? null };
}

/**
 * Whether a response rejects the access token: a 401 that names `invalid_token`, or without a
 * challenge.
 * @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
function saysTokenIsInvalid({ status, headers }: Response): boolean {
  if (status !== 401) return false;
  const header = headers.get('www-authenticate');
  if (header === null) return true;
  return parseWwwAuthenticate(header).some(({ parameters }) => parameters.error === 'invalid_token');
}

/**
 * Streams cannot be sent twice.
 *
 * @throws ConfigurationError if the body is a stream, or belongs to a Request.
 */
function assertReplayable(input: string | URL | Request, init: ReplayableInit | undefined): void {
  const body = init?.body ?? (input instanceof Request ? input.body : undefined);
  if (!isReadOnce(body)) return;
  throw new ConfigurationError(
    'the API responded with 401 and the body was a stream that has been consumed: the token is renewed, so call again; or pass `body` as a function that returns it',
    { retryable: true },
  );
}

function isReadOnce(body: unknown): boolean {
  return (
    typeof body === 'object' &&
    body !== null &&
    (body instanceof ReadableStream || Symbol.asyncIterator in body)
  );
}

type Token<Keys extends KeyCase> = AccessToken<JsonObject, Keys>;

/** Options of a TokenManager. The first token comes from `token`, `acquire` or `store`. */
export interface TokenManagerOptions<Keys extends KeyCase = KeyCase> {
  readonly client: Client<boolean, Keys>;
  /** Used while the store is empty. */
  readonly token?: Token<Keys>;
  /** Gets a token if there is none, or if the refresh token is not valid any more. */
  readonly acquire?: AcquireToken<Keys>;
  /** Where the token is stored and shared. Default: in the memory of this manager. */
  readonly store?: TokenStore;
  /** The token's user, if one client has tokens of many users. Part of the store's key. */
  readonly subject?: string;
  /** The store's key. Default: issuer (or token endpoint), client id and `subject`. */
  readonly key?: string;
  /** Sent with every refresh. */
  readonly refreshParams?: WireParams;
  /**
   * Options of tokens from the store that cannot be stored, such as a `mode` that is a function.
   */
  readonly tokenOptions?: AccessTokenOptions;
  /**
   * Seconds before its expiry from which a token is renewed in the background. Default 60, at most
   * half of its remaining life.
   */
  readonly earlySeconds?: number;
  /** Maximum of the random time by which it is renewed even earlier. Default 30. */
  readonly jitterSeconds?: number;
  /**
   * Seconds for which one process may renew before others take over. Default 30; must exceed the
   * client's `timeoutMs`.
   */
  readonly leaseSeconds?: number;
  /**
   * Milliseconds in which the store must read or write; a renewal during which it does not fails
   * with a StoreError. Default 5000.
   */
  readonly storeTimeoutMs?: number;
  /**
   * Milliseconds after a failure without a new attempt; longer if the server says so. Default 1000.
   */
  readonly cooldownMs?: number;
  /**
   * Called with failures in the background: an early renewal, or a store that cannot be written.
   * What it throws goes to the client's `onHookError`.
   */
  readonly onError?: (error: unknown) => void;
  /** Returns a number in [0, 1). Default `Math.random`. */
  readonly random?: () => number;
  /** Default: the machine's timers. */
  readonly sleep?: Sleep;
}

const tokenManagerOptionNames: OptionNames<TokenManagerOptions> = {
  storeTimeoutMs: 1,
  ...{ client: 1, token: 1, acquire: 1, store: 1, subject: 1 },
  ...{ key: 1, refreshParams: 1, tokenOptions: 1, earlySeconds: 1, jitterSeconds: 1 },
  ...{ leaseSeconds: 1, cooldownMs: 1, onError: 1, random: 1, sleep: 1 },
};

/** Longest Retry-After that is respected. */
const longestCooldownMs = 60_000;

/**
 * Keeps a token valid. It is renewed once for all concurrent calls and all processes that share the
 * store. A valid token is returned immediately, and renewed in the background before it expires.
 * The old refresh token is kept until its successor is stored.
 *
 * @example await using manager = new TokenManager({ client, acquire: () =>
 *   client.clientCredentials.getToken() }); const response = await
 *   manager.fetch('https://api.example.com/me');
 */
export class TokenManager<Keys extends KeyCase = 'snake'> {
  readonly #context: RenewalContext;
  readonly #options: TokenManagerOptions<Keys>;
  readonly #onError: (error: unknown) => void;
  readonly #closing = new AbortController();
  #current: Token<Keys> | undefined;
  /** Seconds before the expiry of the current token. */
  #renewBefore = 0;
  #unsaved: UnsavedToken | undefined;
  #flight: Promise<Token<Keys>> | undefined;
  #failure: { readonly error: unknown; readonly age: Stopwatch; readonly maxAgeSeconds: number } | undefined;

  constructor(options: TokenManagerOptions<Keys>) {
    assertKnownOptions('TokenManager', options, tokenManagerOptionNames);
    const { client, store = memoryTokenStore(), leaseSeconds = 30, storeTimeoutMs = 5000 } = options;
    assertLimit('leaseSeconds', leaseSeconds, 1000);
    assertLimit('storeTimeoutMs', storeTimeoutMs, 1);
    this.#options = { ...options };
    this.#onError = observe('onError', (error) => options.onError?.(error), client.settings.onHookError);
    this.#context = {
      ...{ client, acquire: options.acquire, refreshParams: copyPlain(options.refreshParams ?? {}) },
      ...{
        store: guardedStore(store, storeTimeoutMs),
        key: options.key ?? defaultKey(options),
        seed: options.token,
      },
      ...{ tokenOptions: copyPlain(options.tokenOptions ?? {}), holder: crypto.randomUUID(), leaseSeconds },
      ...{ sleep: options.sleep ?? sleep, random: options.random ?? Math.random },
      onStoreError: this.#onError,
    };
  }

  /**
   * Returns a valid token: the current one, that of the store, or a new one. An aborted signal ends
   * this call, but not the renewal that other calls wait for.
   *
   * @throws TokenUnavailableError if there is no way to get one.
   * @throws StoreError if the store cannot be read or written, does not respond within
   * `storeTimeoutMs`, or reports only conflicts.
   * @throws TimeoutError if the request, or the renewal by another process, does not end.
   * @throws OAuthClientError of the token request; the refresh token is kept, and the next call
   * after `cooldownMs` tries again.
   */
  async getToken({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<Token<Keys>> {
    const current = this.#current;
    if (current !== undefined && !this.#closing.signal.aborted) {
      const leftSeconds = current.secondsLeft();
      if (leftSeconds > this.#renewBefore && this.#unsaved === undefined) return current;
      if (leftSeconds > 0) {
        this.#renewInBackground(current);
        return current;
      }
    }
    if (signal?.aborted) throw abortedBy(signal);
    return await abortable(this.#renew(current), signal);
  }

  /**
   * Renews the token even if it is valid; a token that another process has renewed in the meantime
   * counts. Errors are those of `getToken`, repeated during `cooldownMs`.
   */
  async renew({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<Token<Keys>> {
    return await abortable(this.#renew(await this.getToken({ signal })), signal);
  }

  /**
   * Calls an API like `fetch`, with the token. After a 401 that rejects the token, renews it and
   * repeats the request once: text, forms and bytes are sent again, and a body that is a function
   * is called again.
   *
   * @throws ConfigurationError if the body is a stream and would have to be sent again.
   * @throws OAuthClientError like `getToken` and the token's own `fetch`.
   */
  async fetch(input: string | URL | Request, init?: ReplayableInit): Promise<Response> {
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const token = await this.getToken({ signal });
    const response = await token.fetch(input, initOfAttempt(init));
    if (!saysTokenIsInvalid(response)) return response;
    const renewed = await this.#renewRejected(token, signal);
    if (renewed === undefined) return response;
    await response.body?.cancel();
    assertReplayable(input, init);
    return await renewed.fetch(input, initOfAttempt(init));
  }

  /** Replaces the token, also in the store: after the user has signed in again. */
  async setToken(token: Token<Keys>): Promise<void> {
    const { store, key } = this.#context;
    const conflicts = new ConflictBackoff(this.#context);
    for (;;) {
      const entry = await store.get(key);
      if ((await store.set(key, { token: token.toStored() }, entry?.version)).ok) break;
      await conflicts.wait();
    }
    this.#adopt({ token, unsaved: undefined });
  }

  /**
   * Revokes the grant (by its refresh token, if there is one) and removes the token, also from the
   * store.
   *
   * @throws RevocationError if the server refuses; the token is kept.
   */
  async revoke(): Promise<void> {
    const { store, key } = this.#context;
    const conflicts = new ConflictBackoff(this.#context);
    for (;;) {
      const entry = await store.get(key);
      const token = this.#unsaved?.token ?? restoreToken(this.#context, entry);
      const tokenTypeHint = token?.refreshToken === undefined ? 'access_token' : 'refresh_token';
      await token?.revoke({ tokenTypeHint, throwOnError: true });
      this.#current = undefined;
      this.#unsaved = undefined;
      if ((await store.set(key, { revoked: true }, entry?.version)).ok) return;
      await conflicts.wait();
    }
  }

  /**
   * Aborts waiting calls and rejects new ones. A token request in flight completes, and its token
   * is stored: the response may hold the only copy of a rotated refresh token. Idempotent.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    // Its error is reported to the calls that wait for it.
    await this.#flight?.catch(() => undefined);
  }

  /** Calls `close`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #renewRejected(
    token: Token<Keys>,
    signal: AbortSignal | undefined,
  ): Promise<Token<Keys> | undefined> {
    // Another call has renewed it.
    if (this.#current !== undefined && this.#current.token !== token.token)
      return await this.getToken({ signal });
    try {
      return await abortable(this.#renew(token), signal);
    } catch (error) {
      // It cannot be renewed, so the caller gets the 401.
      if (error instanceof TokenUnavailableError && !error.retryable) return undefined;
      throw error;
    }
  }

  #renewInBackground(current: Token<Keys>): void {
    if (this.#flight !== undefined || this.#coolingError() !== undefined) return;
    // A token that only has to be stored is not renewed.
    const isDue = current.secondsLeft() <= this.#renewBefore;
    this.#renew(isDue ? current : undefined).catch(this.#onError);
  }

  /** Joins the renewal in progress, or starts one; `known` is the token to replace. */
  async #renew(known: Token<Keys> | undefined): Promise<Token<Keys>> {
    if (this.#closing.signal.aborted) throw new ConfigurationError('the TokenManager is closed');
    for (;;) {
      const cooling = this.#coolingError();
      if (cooling !== undefined) throw cooling.error;
      const isOwn = this.#flight === undefined;
      this.#flight ??= this.#fly(known);
      const token = await this.#flight;
      // A renewal that started earlier may return that very token.
      if (isOwn || token.token !== known?.token) return token;
    }
  }

  async #fly(known: Token<Keys> | undefined): Promise<Token<Keys>> {
    try {
      const request = { known, unsaved: this.#unsaved, signal: this.#closing.signal };
      return this.#adopt(await renewToken(this.#context, request));
    } catch (error) {
      if (this.#closing.signal.aborted) throw new AbortError('the TokenManager was closed', { cause: error });
      this.#coolDown(error);
      throw error;
    } finally {
      this.#flight = undefined;
    }
  }

  #adopt({ token: renewed, unsaved }: Renewal): Token<Keys> {
    // All tokens of a manager belong to its client.
    const token = renewed as Token<Keys>;
    const { earlySeconds = 60, jitterSeconds = 30 } = this.#options;
    const { random } = this.#context;
    const early = { earlySeconds, jitterSeconds, random: random() };
    this.#current = token;
    this.#renewBefore = renewBeforeSeconds(token.secondsLeft(), early);
    this.#unsaved = unsaved;
    this.#failure = undefined;
    return token;
  }

  #coolingError(): { readonly error: unknown } | undefined {
    if (this.#failure === undefined) return undefined;
    return this.#failure.age.elapsedSeconds() < this.#failure.maxAgeSeconds ? this.#failure : undefined;
  }

  #coolDown(error: unknown): void {
    const { cooldownMs = 1000 } = this.#options;
    const waitMs = error instanceof OAuthError ? (error.retryAfterMs ?? 0) : 0;
    const lengthMs = Math.min(longestCooldownMs, Math.max(cooldownMs, waitMs));
    const age = new Stopwatch(this.#context.client.settings.now);
    this.#failure = { error, age, maxAgeSeconds: lengthMs / 1000 };
  }
}

/** @throws {ConfigurationError} unless a limit is more than 0 and timers support it. */
function assertLimit(name: string, value: number, millisecondsPerUnit: number): void {
  if (!(value > 0)) throw new ConfigurationError(`\`${name}\` must be more than 0`);
  assertTimer(name, value * millisecondsPerUnit);
}

function defaultKey({ client, subject = '' }: TokenManagerOptions): string {
  return JSON.stringify([client.settings.issuer ?? client.tokenUrl(), client.clientId ?? '', subject]);
}

/** Settles like the promise, or rejects if the signal is aborted first; the work continues. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  const aborted = Promise.withResolvers<never>();
  const stop = () => aborted.reject(abortedBy(signal));
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function abortedBy(signal: AbortSignal): AbortError {
  return new AbortError('the call was aborted by its signal', { cause: signal.reason });
}
