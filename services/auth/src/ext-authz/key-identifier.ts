import type { JsonObject } from '@tollgate/kit/json';
import type { LimitOverride } from '@tollgate/policies/decide/limit-override';
import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import type { ApiKeyCache } from '../api-keys/key-cache.ts';
import type { ApiKeyState } from '../api-keys/state-store.ts';
import type { Settings } from '../config/settings.ts';
import { type Usage, usePrecisionMs } from '../db/usage.ts';
import { WrongKeys } from '../limits/wrong-keys.ts';
import type { Caller } from './caller.ts';
import { ClientAddresses, unknownAddress } from './client-address.ts';
import { noHeaders, type WantedHeaders } from './codec.ts';
import { invalidToken, overLimit } from './denials.ts';
import { KnownCaller } from './identity-headers.ts';
import {
  denyKey,
  findKeyProblem,
  isKeyToken,
  keyIdentity,
  keyStarts,
  mayExist,
  readKeyHeaders,
} from './key-caller.ts';
import type { KeyMetrics } from './observability.ts';
import { readInTime } from './read-in-time.ts';
import type { AuthzRequest } from './request.ts';
import type { AuthzDenied } from './result.ts';

/** The parts of a request that identify its caller. */
export type Credentials = Pick<
  AuthzRequest,
  'method' | 'host' | 'authorization' | 'headers' | 'sourceAddress' | 'forwardedFor'
>;

/** API keys at the gateway. */
export interface KeyContext {
  readonly cache: Pick<ApiKeyCache, 'recall' | 'has' | 'find'>;
  readonly usage: Pick<Usage, 'record'>;
  /** Undefined if metrics are off. */
  readonly metrics: KeyMetrics | undefined;
  readonly settings: Settings;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}

interface KeyIdentifierOptions {
  readonly readLimit: (userId: string, appMetadata: JsonObject) => LimitOverride | undefined;
  /** Logs that the database is unavailable. */
  readonly onFailure: (error: unknown) => Caller;
}

interface Check {
  readonly mapping: ClaimMapping;
  readonly timeoutMs: number;
}

/** A key of a request, and the headers that must not reach the upstream. */
interface SentKey {
  readonly key: string;
  readonly credentials: readonly string[];
}

/** A caller, and the values that it was created from. */
interface CreatedCaller {
  readonly mapping: ClaimMapping;
  readonly credentials: readonly string[];
  readonly caller: KnownCaller;
  /** When its next use is recorded. */
  nextUseMs: number;
}

/** Identifies callers by API keys. */
export class KeyIdentifier {
  readonly #context: KeyContext;
  readonly #options: KeyIdentifierOptions;
  readonly #addresses: ClientAddresses;
  readonly #starts: readonly string[];
  readonly #inHeader: readonly string[];
  readonly #inBearer: readonly string[];
  readonly #wrongKeys: WrongKeys;
  /** Keyed by states, each of which is one object for as long as it is cached. */
  readonly #callers = new WeakMap<ApiKeyState, CreatedCaller>();

  constructor(context: KeyContext, options: KeyIdentifierOptions) {
    const { settings } = context;
    this.#context = context;
    this.#options = options;
    this.#addresses = new ClientAddresses(settings.trustedProxies);
    this.#starts = keyStarts(settings);
    this.#inHeader = settings.extAuthzApiKeyHeaders;
    this.#inBearer = [...settings.extAuthzApiKeyHeaders, 'authorization'];
    this.#wrongKeys = new WrongKeys(settings);
  }

  /** Headers that may have a key, also in a form that is not accepted. */
  get credentials(): readonly string[] {
    return this.#inBearer;
  }

  /**
   * Undefined if the request has no API key. Returns a promise only if the database must be read.
   *
   * @param bearer the token of the `Authorization` header
   */
  identify(
    request: Credentials,
    bearer: { readonly token: string } | { readonly reason: string } | undefined,
    check: Check,
  ): Caller | Promise<Caller> | undefined {
    const isBearer = bearer !== undefined && 'token' in bearer && isKeyToken(bearer.token, this.#starts);
    // A header that is sent twice has both values, which is no key.
    const apiKeys = readKeyHeaders(request.headers, this.#inHeader);
    if (!isBearer && apiKeys.length === 0) return undefined;
    // Servers disagree on which of several credentials counts.
    if (apiKeys.length + (bearer === undefined ? 0 : 1) > 1)
      return deny(invalidToken('several_credentials'), this.#inBearer);
    const sent = isBearer
      ? { key: bearer.token, credentials: this.#inBearer }
      : { key: apiKeys[0] ?? '', credentials: this.#inHeader };
    return this.#identifyKey(sent, request, check);
  }

  #identifyKey(sent: SentKey, request: Credentials, check: Check): Caller | Promise<Caller> {
    const { cache, settings } = this.#context;
    const known = cache.recall(sent.key);
    if (known !== undefined && known !== 'unknown')
      return this.#checkState(known, sent, { ...check, request });
    // Other users of the address keep their access: keys in use are known. Reading the state of a
    // key that was revoked removes it.
    if (cache.has(sent.key)) return this.#read(sent, request, check);
    const retryAfterMs = this.#wrongKeys.retryAfterMs(this.#client(request), this.#context.nowMs());
    if (retryAfterMs > 0) {
      this.#context.metrics?.wrong.inc({ result: 'limited' });
      return deny(overLimit(Math.ceil(retryAfterMs / 1000)), sent.credentials);
    }
    if (known === 'unknown' || !mayExist(sent.key, settings)) return this.#denyWrong(sent, request);
    return this.#read(sent, request, check);
  }

  /** Undefined for clients that cannot be distinguished. */
  #client(request: Credentials): string | undefined {
    const address = this.#addresses.find(request);
    return address === unknownAddress || this.#addresses.isHidden(request) ? undefined : address;
  }

  async #read(sent: SentKey, request: Credentials, check: Check): Promise<Caller> {
    try {
      const state = await readInTime(this.#context.cache.find(sent.key), check.timeoutMs);
      if (state === undefined) return this.#denyWrong(sent, request);
      return this.#checkState(state, sent, { ...check, request });
    } catch (error) {
      return this.#options.onFailure(error);
    }
  }

  #denyWrong({ credentials }: SentKey, request: Credentials): Caller {
    this.#wrongKeys.count(this.#client(request), this.#context.nowMs());
    this.#context.metrics?.wrong.inc({ result: 'rejected' });
    return deny(invalidToken('invalid_api_key'), credentials);
  }

  #checkState(
    state: ApiKeyState,
    { credentials }: SentKey,
    { mapping, request }: Check & { readonly request: Credentials },
  ): Caller {
    const { usage, nowMs } = this.#context;
    const now = nowMs();
    const address = () => this.#addresses.findAddress(request);
    const problem = findKeyProblem(state, { nowMs: now, address });
    if (problem !== undefined) return deny(denyKey(problem), credentials);
    const known = this.#callers.get(state);
    const isCurrent = known?.mapping === mapping && known.credentials === credentials;
    const created = isCurrent ? known : this.#createCaller(state, mapping, credentials);
    if (now >= created.nextUseMs) {
      created.nextUseMs = now + usePrecisionMs;
      usage.record(state.id, now);
    }
    return created.caller;
  }

  #createCaller(state: ApiKeyState, mapping: ClaimMapping, credentials: readonly string[]): CreatedCaller {
    const { settings } = this.#context;
    const { userId, user } = state;
    const ownerLimit =
      userId === undefined || user === undefined
        ? undefined
        : this.#options.readLimit(userId, user.appMetadata);
    const caller = new KnownCaller(keyIdentity(state, { settings, mapping, ownerLimit }), credentials);
    const created = { mapping, credentials, caller, nextUseMs: 0 };
    this.#callers.set(state, created);
    return created;
  }
}

function deny(denial: AuthzDenied, credentials: readonly string[]): Caller {
  return { ok: false, denial, credentials };
}

/** Adds the headers that may have an API key to those whose values are read. */
export function withKeyHeaders(
  { apiKeysEnabled, extAuthzApiKeyHeaders }: Pick<Settings, 'apiKeysEnabled' | 'extAuthzApiKeyHeaders'>,
  wantedHeaders: () => WantedHeaders,
): () => WantedHeaders {
  if (!apiKeysEnabled) return wantedHeaders;
  let known: WantedHeaders = noHeaders;
  let all: WantedHeaders = new Set(extAuthzApiKeyHeaders);
  return () => {
    const wanted = wantedHeaders();
    // Changes with the policies only.
    if (wanted !== known) all = new Set([...wanted, ...extAuthzApiKeyHeaders]);
    known = wanted;
    return all;
  };
}
