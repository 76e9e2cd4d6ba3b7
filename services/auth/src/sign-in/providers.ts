import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors, OAuthError } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { authenticateUser } from '../http/authenticate.ts';

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

/** What a client presents of an ID token, as far as it decides which provider it is of. */
export interface PresentedIdToken {
  readonly idToken?: string | undefined;
  readonly provider?: string | undefined;
  readonly clientId?: string | undefined;
  readonly issuer?: string | undefined;
}

/** Providers whose ID tokens clients may present, and their issuers. */
const issuers: ReadonlyMap<string, string> = new Map([
  ['apple', 'https://appleid.apple.com'],
  ['azure', 'https://login.microsoftonline.com/common/v2.0'],
  ['facebook', 'https://www.facebook.com'],
  ['google', 'https://accounts.google.com'],
  ['kakao', 'https://kauth.kakao.com'],
  ['keycloak', ''],
]);

/** Providers besides those that are listed at `/settings`. */
const furtherProviders: readonly string[] = ['fly', 'kakao', 'linkedin_oidc', 'slack_oidc', 'x', 'zoom'];

/**
 * Refuses an ID token, as a server on which no provider is enabled does: sign-in with providers is not served yet.
 *
 * @throws OAuthError for what is missing; AppError `provider_disabled`, `validation_failed` for an issuer of no known provider.
 */
export function refuseIdToken({
  idToken = '',
  provider = '',
  clientId = '',
  issuer = '',
}: PresentedIdToken): never {
  if (idToken === '') throw new OAuthError('invalid request', 'id_token required');
  if (provider === '' && (clientId === '' || issuer === ''))
    throw new OAuthError('invalid request', 'provider or client_id and issuer required');
  const known = [...issuers].find(([name, its]) => name === provider || (its !== '' && its === issuer));
  if (known === undefined)
    throw errors.validation_failed({ message: `Custom OIDC provider ${quote(provider)} not allowed` });
  const [name, its] = known;
  // Tenants of Azure and realms of Keycloak are issuers of their own.
  const shown = name === 'azure' || name === 'keycloak' ? issuer || its : its;
  throw errors.provider_disabled({ message: `Provider (issuer ${quote(shown)}) is not enabled` });
}

/** Refuses a redirect to a provider. @throws AppError `validation_failed`. */
function refuseProvider(provider: string): never {
  const isKnown = [...providerNames, ...furtherProviders].includes(provider);
  const reason = isKnown
    ? 'provider is not enabled'
    : `Provider ${provider.slice(0, maxShownChars)} could not be found`;
  throw errors.validation_failed({ message: `Unsupported provider: ${reason}` });
}

/** Longer names are of no provider. */
const maxShownChars = 64;

function quote(text: string): string {
  return JSON.stringify(text.slice(0, maxShownChars));
}

const authorizeQuery = Type.Object({ provider: Type.Optional(Type.String()) });

/** Paths of GoTrue for features that are not served yet: they answer as a server on which these are disabled. */
export const addDisabledRoutes: AddRoutes = (api, deps) => {
  const schema = { hide: true };
  const authorize = { schema: { ...schema, querystring: authorizeQuery }, exposeHeadRoute: false };
  api.get('/authorize', authorize, (request) => refuseProvider(request.query.provider ?? ''));

  const refuseLinking = async (request: FastifyRequest): Promise<never> => {
    await authenticateUser(request, deps);
    throw errors.manual_linking_disabled();
  };
  api.get('/user/identities/authorize', { schema, exposeHeadRoute: false }, refuseLinking);
  api.delete('/user/identities/:identity_id', { schema }, refuseLinking);

  const refuseSaml = async (): Promise<never> => {
    await Promise.resolve();
    throw errors.saml_provider_disabled();
  };
  // Before the body is read.
  const saml = { schema, onRequest: refuseSaml };
  api.post('/sso', saml, refuseSaml);
  api.post('/sso/saml/acs', saml, refuseSaml);
  api.get('/sso/saml/metadata', { ...saml, exposeHeadRoute: false }, refuseSaml);
};
