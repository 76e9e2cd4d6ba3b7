import { Stopwatch } from '../clock.ts';
import { type CachedDocument, DocumentCache } from '../document-cache.ts';
import { DiscoveryError } from '../errors.ts';
import { loadDocument } from '../http/send-request.ts';
import { assertSecure, resolveUrl } from '../http/url.ts';
import type { WebCryptoKey } from '../jwt/import-key.ts';
import { isJwks, type Jwks, type KeySource, LocalKeySource } from '../jwt/key-sources.ts';
import { isTooDeep } from '../objects.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import type { ClientSettings } from '../settings.ts';

/** Options of a key source that loads a key set. */
export interface RotatingKeySourceOptions {
  /** Loads the key set. Errors are passed on, unless known keys can be used. */
  readonly load: () => Promise<unknown>;
  /** Epoch seconds; beside it, a monotonic clock measures ages. */
  readonly now: () => number;
  /** Where the key set is kept, by its URL. Default: a cache that is not shared. */
  readonly cached?: { readonly cache: DocumentCache; readonly url: string } | undefined;
  /** Seconds for which a loaded set is cached. Default 600. */
  readonly maxAgeSeconds?: number | undefined;
  /**
   * Minimum of seconds between loads caused by unknown keys or bad signatures, and between those
   * after failures, as a rate limit. Default 30.
   */
  readonly cooldownSeconds?: number | undefined;
  /**
   * Seconds beyond `maxAgeSeconds` for which the last set is used while loading fails. Default
   * 3600.
   */
  readonly staleSeconds?: number | undefined;
}

/**
 * Keys that are loaded again when they are old, and when no known key has signed a token.
 * Concurrent loads are one; a failed load is not cached.
 */
export class RotatingKeySource implements KeySource {
  readonly #options: Required<Omit<RotatingKeySourceOptions, 'cached'>>;
  readonly #cached: { readonly cache: DocumentCache; readonly url: string };
  #current: { readonly source: KeySource; readonly cached: CachedDocument } | undefined;
  /** Since the last attempt to load. */
  #attempt: Stopwatch | undefined;
  /** Since the last load that an unknown key or a bad signature caused. */
  #forced: Stopwatch | undefined;
  #loading: Promise<KeySource> | undefined;

  constructor({
    load,
    now,
    cached = { cache: new DocumentCache({ now }), url: '' },
    maxAgeSeconds = 600,
    cooldownSeconds = 30,
    staleSeconds = 3600,
  }: RotatingKeySourceOptions) {
    this.#options = { load, now, maxAgeSeconds, cooldownSeconds, staleSeconds };
    this.#cached = cached;
  }

  async find(
    wanted: Parameters<KeySource['find']>[0],
    { reload = false }: { readonly reload?: boolean } = {},
  ): Promise<readonly WebCryptoKey[]> {
    const source = await this.#currentSource(reload);
    return await source.find(wanted);
  }

  async #currentSource(reload: boolean): Promise<KeySource> {
    this.#adoptCached();
    if (this.#current === undefined) return await this.#loadOnce();
    const { now, maxAgeSeconds = 0, staleSeconds = 0, cooldownSeconds = 0 } = this.#options;
    const { source } = this.#current;
    const age = this.#current.cached.age.elapsedSeconds();
    if (!reload && age < maxAgeSeconds) return source;
    const isUsable = age < maxAgeSeconds + staleSeconds;
    // A key may have been rotated right after a load, so a reload has a cooldown of its own.
    const last = reload ? this.#forced : this.#attempt;
    const lastAge = last?.elapsedSeconds() ?? Number.POSITIVE_INFINITY;
    if (isUsable && this.#loading === undefined && lastAge < cooldownSeconds) return source;
    if (reload) this.#forced = new Stopwatch(now);
    try {
      return await this.#loadOnce();
    } catch (error) {
      // The last keys outlive an outage of the issuer, for a bounded time.
      if (isUsable) return source;
      throw error;
    }
  }

  async #loadOnce(): Promise<KeySource> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return await this.#loading;
  }

  /** Uses the key set that another client has loaded, or an earlier process. */
  #adoptCached(): void {
    const { cache, url } = this.#cached;
    const cached = cache.get(url);
    if (cached === undefined || cached === this.#current?.cached || !isJwks(cached.document)) return;
    this.#current = { source: new LocalKeySource(cached.document), cached };
  }

  async #load(): Promise<KeySource> {
    const { load, now } = this.#options;
    const { cache, url } = this.#cached;
    this.#attempt = new Stopwatch(now);
    const loaded = await cache.load(url, async () => checkJwks(await load()));
    const source = new LocalKeySource(checkJwks(loaded.document));
    this.#current = { source, cached: loaded };
    return source;
  }
}

function checkJwks(document: unknown): Jwks {
  if (!isJwks(document)) throw invalidKeySet('is not a JSON object with an array "keys" of objects');
  if (isTooDeep(document)) throw invalidKeySet('has too many levels');
  return document;
}

function invalidKeySet(problem: string): DiscoveryError {
  return new DiscoveryError(`the key set ${problem}`, { retryable: true });
}

/** How the key set at a URL is cached. */
export interface RemoteKeySourceOptions {
  /** Seconds for which a loaded set is cached. Default 600. */
  readonly maxAgeSeconds?: number;
  /** Minimum of seconds between loads caused by unknown keys or failures. Default 30. */
  readonly cooldownSeconds?: number;
  /**
   * Seconds beyond `maxAgeSeconds` for which the last set is used while loading fails. Default
   * 3600.
   */
  readonly staleSeconds?: number;
}

const keySetOptionNames: OptionNames<RemoteKeySourceOptions> = {
  ...{ maxAgeSeconds: 1, cooldownSeconds: 1, staleSeconds: 1 },
};

/**
 * The key set at a URL, loaded with the client's `fetch`, time-out, limits and hooks.
 * @throws {ConfigurationError} for plain http: see `allowInsecure` of the client.
 */
export function remoteKeySource(
  settings: ClientSettings,
  jwksUri: string,
  options: RemoteKeySourceOptions = {},
): KeySource {
  assertKnownOptions('`keySet`', options, keySetOptionNames);
  const location = resolveUrl(settings.site, jwksUri);
  assertSecure(location, settings.allowInsecure, 'the key set');
  return new RotatingKeySource({
    ...options,
    now: settings.now,
    ...(settings.cache !== undefined && { cached: { cache: settings.cache, url: location } }),
    load: () => loadDocument(settings, location),
  });
}
