import type { Settings } from '../config/settings.ts';
import { OAuth2Connection, type ProviderConnection } from './connection.ts';
import { customProviders } from './custom.ts';
import { OAuth1Connection } from './oauth1.ts';
import { providerNames, providers } from './registry.ts';
import { callbackUrl, getCredentials, isEnabled } from './settings.ts';

/** The enabled providers, by the value of the parameter `provider`. */
export class ProviderConnections {
  readonly #connections = new Map<string, ProviderConnection>();

  constructor(settings: Settings, nowMs: () => number) {
    for (const name of providerNames) {
      if (!isEnabled(name, settings)) continue;
      const provider = providers[name];
      const options = { credentials: getCredentials(name, settings), nowMs };
      this.#connections.set(
        name,
        'endpoints' in provider
          ? new OAuth2Connection(name, provider, options)
          : new OAuth1Connection(name, provider, options),
      );
    }
    for (const { name, provider, credentials } of customProviders(
      settings.externalCustomProviders,
      callbackUrl(settings),
    ))
      this.#connections.set(name, new OAuth2Connection(name, provider, { credentials, nowMs }));
  }

  /** The enabled providers. */
  names(): readonly string[] {
    return [...this.#connections.keys()];
  }

  /** Undefined for a provider that is unknown or disabled. */
  get(name: string): ProviderConnection | undefined {
    return this.#connections.get(name);
  }
}
