import { RecentlyUsed } from '@tollgate/kit/collections';
import type { Settings } from '../config/settings.ts';
import { OAuth2Connection, type ProviderConnection } from '../identity-providers/connection.ts';
import {
  connectCustom,
  customPrefix,
  discoveryFetch,
  noCustomProvider,
} from '../identity-providers/custom.ts';
import { OAuth1Connection } from '../identity-providers/oauth1.ts';
import { providerNames, providers } from '../identity-providers/registry.ts';
import type { MessagesContext } from '../messages/context.ts';
import { guardedFetch } from '../outbound/fetch.ts';
import { type CustomProviderStore, fromStored, type StoredVersion } from './custom-store.ts';
import { callbackUrl, getCredentials, isEnabled } from './settings.ts';
import type { ProviderStore } from './store.ts';

export type ProvidersContext = MessagesContext & {
  readonly store: { readonly providers: ProviderStore; readonly customProviders: CustomProviderStore };
  readonly providers: ProviderConnections;
};

/** Each has metadata and keys of its provider. */
const maxStored = 1000;
/** The longest identifier of the table. */
const maxIdentifierChars = 50;

interface StoredConnection {
  readonly version: string;
  readonly connection: ProviderConnection;
}

/**
 * The enabled providers, by the value of the parameter `provider`. Those of the settings are
 * constant. Those of administrators are read with each sign-in, so that changes apply on all
 * replicas at once; only their metadata and keys are cached.
 */
export class ProviderConnections {
  readonly #settings: Settings;
  readonly #store: Pick<ProvidersContext['store'], 'customProviders'>;
  readonly #nowMs: () => number;
  readonly #configured = new Map<string, ProviderConnection>();
  readonly #stored = new RecentlyUsed<StoredConnection>({ capacity: maxStored });
  readonly #issuers = new RecentlyUsed<ProviderConnection>({ capacity: maxStored });

  constructor(
    settings: Settings,
    options: {
      readonly store: Pick<ProvidersContext['store'], 'customProviders'>;
      readonly nowMs: () => number;
    },
  ) {
    const { nowMs } = options;
    this.#settings = settings;
    this.#store = options.store;
    this.#nowMs = nowMs;
    for (const name of providerNames) {
      if (!isEnabled(name, settings)) continue;
      const provider = providers[name];
      const credentials = getCredentials(name, settings);
      this.#configured.set(
        name,
        'endpoints' in provider
          ? new OAuth2Connection(name, provider, { credentials, nowMs })
          : new OAuth1Connection(name, provider, { credentials, nowMs }),
      );
    }
    for (const custom of settings.externalCustomProviders) {
      const name = `${customPrefix}${custom.name}`;
      const { provider, credentials } = connectCustom(custom, callbackUrl(settings));
      this.#configured.set(name, new OAuth2Connection(name, provider, { credentials, nowMs }));
    }
  }

  /** The providers that the settings enable. */
  names(): readonly string[] {
    return [...this.#configured.keys()];
  }

  /** All enabled providers. Those of administrators come last, and have a label for users. */
  async list(): Promise<readonly { readonly name: string; readonly label?: string }[]> {
    const configured = this.names().map((name) => ({ name }));
    if (!this.#settings.customOauthEnabled) return configured;
    const stored = await this.#store.customProviders.listEnabled();
    return [
      ...configured,
      ...stored.flatMap(({ identifier, name: label }) =>
        this.isConfigured(identifier) ? [] : [{ name: identifier, label }],
      ),
    ];
  }

  isConfigured(name: string): boolean {
    return this.#configured.has(name);
  }

  /** Verifies ID tokens of an issuer that the settings allow, for any client. */
  findIssuer(issuer: string, clientId: string): ProviderConnection | undefined {
    if (!this.#settings.allowedIdTokenIssuers.includes(issuer)) return undefined;
    const key = JSON.stringify([issuer, clientId]);
    const known = this.#issuers.get(key);
    if (known !== undefined) return known;
    const custom = { ...noCustomProvider, issuer, clientIds: [clientId] };
    const { provider, credentials } = connectCustom(custom, callbackUrl(this.#settings));
    const connection = new OAuth2Connection(issuer, provider, { credentials, nowMs: this.#nowMs });
    this.#issuers.set(key, connection);
    return connection;
  }

  /** Undefined for a provider that is unknown or disabled. */
  async find(name: string): Promise<ProviderConnection | undefined> {
    const configured = this.#configured.get(name);
    if (configured !== undefined || !this.#settings.customOauthEnabled) return configured;
    if (!name.startsWith(customPrefix) || name.length > maxIdentifierChars) return undefined;
    const stored = await this.#store.customProviders.find(name);
    if (stored?.enabled === true) return this.#connect(stored);
    this.#stored.delete(name);
    return undefined;
  }

  #connect(stored: StoredVersion): ProviderConnection {
    const { identifier: name, version, discovery_url: discoveryUrl } = stored;
    const known = this.#stored.get(name);
    if (known?.version === version) return known.connection;
    const { apiExternalUrl, customOauthExternalUrl, customOauthPrivateHosts: privateHosts } = this.#settings;
    const redirectUri = callbackUrl({ apiExternalUrl: customOauthExternalUrl || apiExternalUrl });
    const { provider, credentials } = connectCustom(fromStored(stored), redirectUri);
    const connection = new OAuth2Connection(name, provider, {
      credentials,
      nowMs: this.#nowMs,
      fetch: guardedFetch(privateHosts),
      fetchMetadata: discoveryFetch(discoveryUrl ?? '', privateHosts),
    });
    this.#stored.set(name, { version, connection });
    return connection;
  }
}
