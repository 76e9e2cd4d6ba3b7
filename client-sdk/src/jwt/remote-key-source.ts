import type { ClientSettings } from '../client/client-settings.ts';
import { endpointUrl } from '../client/endpoint-url.ts';
import { assertSecure } from '../client/secure-transport.ts';
import { sendRequest } from '../client/send-request.ts';
import type { KeySource } from './key-source.ts';
import { createRotatingKeySource } from './rotating-key-source.ts';

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
  const location = endpointUrl(settings.site, jwksUri);
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
