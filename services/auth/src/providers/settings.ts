import type { Settings } from '../config/settings.ts';
import { withoutSlash } from './provider.ts';
import type { ProviderName } from './registry.ts';

/** How this server is registered with a provider. */
export interface ProviderCredentials {
  /** The first one is used for sign-in; ID tokens for all of them are accepted. */
  readonly clientIds: readonly string[];
  /** Empty for a public client. */
  readonly secret: string;
  /** The URL of `/callback` as registered with the provider. */
  readonly redirectUri: string;
  /** Base URL instead of the provider's own; empty for that. */
  readonly url: string;
  /** Whether users without an email may sign in. */
  readonly emailOptional: boolean;
  /** Whether presented ID tokens may have any nonce. */
  readonly skipNonceCheck: boolean;
}

export function isEnabled(name: ProviderName, settings: Settings): boolean {
  return settings[`externalEnabled:${name}`];
}

export function getCredentials(name: ProviderName, settings: Settings): ProviderCredentials {
  const { externalIosBundleId: bundleId } = settings;
  const appIds = name === 'apple' && bundleId !== '' ? [bundleId] : [];
  return {
    clientIds: [...settings[`externalClientId:${name}`], ...appIds],
    secret: settings[`externalSecret:${name}`],
    redirectUri: settings[`externalRedirectUri:${name}`] || callbackUrl(settings),
    url: settings[`externalUrl:${name}`],
    emailOptional: settings[`externalEmailOptional:${name}`],
    skipNonceCheck: settings[`externalSkipNonceCheck:${name}`],
  };
}

/** The URL of `/callback`. */
export function callbackUrl({ apiExternalUrl }: Pick<Settings, 'apiExternalUrl'>): string {
  return `${withoutSlash(apiExternalUrl)}/callback`;
}
