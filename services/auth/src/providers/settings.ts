import type { Settings } from '../config/settings.ts';
import { type ProviderCredentials, withoutSlash } from '../identity-providers/provider.ts';
import type { ProviderName } from '../identity-providers/registry.ts';

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
