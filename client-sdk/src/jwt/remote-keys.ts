import { DiscoveryError } from '../errors.ts';
import { sendRequest } from '../http/request.ts';
import { assertSecure, resolveUrl } from '../http/url.ts';
import type { ClientSettings } from '../settings.ts';
import { createLocalKeySource, isJwks, type KeySource } from './key-sources.ts';

/** Options of a key source that is loaded from elsewhere. */
export interface RotatingKeySourceOptions {
  /** Gets the key set; its errors are passed on, or bridged by the keys at hand. */
  readonly load: () => Promise<unknown>;
  /** Epoch seconds. */
  readonly now: () => number;
  /** Seconds for which a loaded set is used without asking again. Default 600. */
  readonly maxAgeSeconds?: number | undefined;
  /** Seconds between two loads that unknown keys, bad signatures or failures cause, so that none of them can make us hammer the issuer. Default 30. */
  readonly cooldownSeconds?: number | undefined;
  /** Seconds beyond `maxAgeSeconds` for which the last good set still serves while loading fails. Default 3600. */
  readonly staleSeconds?: number | undefined;
}

/**
 * A key source that follows the issuer's rotation: it loads the set when it is first wanted, when it is old, and when a
 * token is not signed by any key it knows. Concurrent loads are one; a failed load is never remembered as an answer.
 */
export function createRotatingKeySource({
  load,
  now,
  maxAgeSeconds = 600,
  cooldownSeconds = 30,
  staleSeconds = 3600,
}: RotatingKeySourceOptions): KeySource {
  let current: { readonly source: KeySource; readonly loadedAt: number } | undefined;
  let attemptedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<KeySource> | undefined;

  async function loadOnce(): Promise<KeySource> {
    loading ??= loadNow().finally(() => {
      loading = undefined;
    });
    return await loading;
  }

  async function loadNow(): Promise<KeySource> {
    attemptedAt = now();
    const jwks = await load();
    if (!isJwks(jwks)) {
      throw new DiscoveryError('the key set is not a JSON object with an array "keys" of objects', {
        retryable: true,
      });
    }
    const source = createLocalKeySource(jwks);
    current = { source, loadedAt: now() };
    return source;
  }

  async function currentSource(reload: boolean): Promise<KeySource> {
    if (current === undefined) return await loadOnce();
    const { source, loadedAt } = current;
    const age = now() - loadedAt;
    if (!reload && age < maxAgeSeconds) return source;
    const bridged = age < maxAgeSeconds + staleSeconds;
    if (bridged && loading === undefined && now() - attemptedAt < cooldownSeconds) return source;
    try {
      return await loadOnce();
    } catch (error) {
      // An issuer that is down for a while must not lock everybody out: its last keys serve on, for a bounded time.
      if (bridged) return source;
      throw error;
    }
  }

  return {
    async find(wanted, { reload = false } = {}) {
      const source = await currentSource(reload);
      return await source.find(wanted);
    },
  };
}

/** How a key set at a URL is kept. */
export interface RemoteKeySourceOptions {
  /** Seconds for which a loaded set is used without asking again. Default 600. */
  readonly maxAgeSeconds?: number;
  /** Seconds between two loads that unknown keys or failures cause. Default 30. */
  readonly cooldownSeconds?: number;
  /** Seconds beyond `maxAgeSeconds` for which the last good set still serves while loading fails. Default 3600. */
  readonly staleSeconds?: number;
}

/**
 * A key source over the key set at a URL, loaded with the client's `fetch`, time-out, limits and hooks.
 * @throws {ConfigurationError} for plain http: see `allowInsecure` of the client.
 */
export function createRemoteKeySource(
  settings: ClientSettings,
  jwksUri: string,
  options: RemoteKeySourceOptions = {},
): KeySource {
  const location = resolveUrl(settings.site, jwksUri);
  assertSecure(location, settings.allowInsecure, 'the key set');
  return createRotatingKeySource({
    ...options,
    now: settings.now,
    async load() {
      const response = await sendRequest(settings, {
        operation: 'discovery',
        method: 'GET',
        location,
        // The names of key members are the standard's: not to be converted.
        options: {
          parse: 'json',
          keyCase: 'preserve',
          throwOnError: true,
          headers: { accept: 'application/json' },
        },
      });
      return response.parsed;
    },
  });
}
