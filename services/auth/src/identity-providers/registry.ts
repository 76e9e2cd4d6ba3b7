import type { OAuth1Provider } from './oauth1.ts';
import type { Provider } from './provider.ts';
import { apple } from './vendors/apple.ts';
import { azure } from './vendors/azure.ts';
import { bitbucket } from './vendors/bitbucket.ts';
import { discord } from './vendors/discord.ts';
import { facebook } from './vendors/facebook.ts';
import { figma } from './vendors/figma.ts';
import { fly } from './vendors/fly.ts';
import { github } from './vendors/github.ts';
import { gitlab } from './vendors/gitlab.ts';
import { google } from './vendors/google.ts';
import { kakao } from './vendors/kakao.ts';
import { keycloak } from './vendors/keycloak.ts';
import { linkedin } from './vendors/linkedin.ts';
import { linkedinOidc } from './vendors/linkedin-oidc.ts';
import { notion } from './vendors/notion.ts';
import { slack, slackOidc } from './vendors/slack.ts';
import { snapchat } from './vendors/snapchat.ts';
import { spotify } from './vendors/spotify.ts';
import { twitch } from './vendors/twitch.ts';
import { twitter } from './vendors/twitter.ts';
import { workos } from './vendors/workos.ts';
import { x } from './vendors/x.ts';
import { zoom } from './vendors/zoom.ts';

/**
 * Providers by the value of the parameter `provider`, which is also that of `identities.provider`.
 */
export const providers = {
  apple,
  azure,
  bitbucket,
  discord,
  facebook,
  figma,
  fly,
  github,
  gitlab,
  google,
  kakao,
  keycloak,
  linkedin_oidc: linkedinOidc,
  linkedin,
  notion,
  slack_oidc: slackOidc,
  slack,
  snapchat,
  spotify,
  twitch,
  twitter,
  workos,
  x,
  zoom,
} as const satisfies Readonly<Record<string, Provider | OAuth1Provider>>;

export type ProviderName = keyof typeof providers;

export const providerNames = Object.keys(providers) as readonly ProviderName[]; // of the constant above
