/** External identity providers, as `/settings` and the parameter `provider` spell them. */
export const providerNames = [
  'apple',
  'azure',
  'bitbucket',
  'discord',
  'facebook',
  'figma',
  'github',
  'gitlab',
  'google',
  'keycloak',
  'linkedin',
  'notion',
  'snapchat',
  'spotify',
  'slack',
  'twitch',
  'twitter',
  'workos',
] as const;

/** One of {@link providerNames}. */
export type ProviderName = (typeof providerNames)[number];
