import type { FastifyRequest } from 'fastify';
import { errors, OAuthError } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { authenticateUser } from '../http/authenticate.ts';

/** The parts of an ID token grant that determine its provider. */
interface PresentedIdToken {
  readonly idToken?: string | undefined;
  readonly provider?: string | undefined;
  readonly clientId?: string | undefined;
  readonly issuer?: string | undefined;
}

/** Issuers by provider, for ID token grants. */
const issuers: ReadonlyMap<string, string> = new Map([
  ['apple', 'https://appleid.apple.com'],
  ['azure', 'https://login.microsoftonline.com/common/v2.0'],
  ['facebook', 'https://www.facebook.com'],
  ['google', 'https://accounts.google.com'],
  ['kakao', 'https://kauth.kakao.com'],
  ['keycloak', ''],
]);

/**
 * Rejects an ID token. Sign-in with providers is not supported yet: responses are those of a server
 * with all providers disabled.
 *
 * @throws OAuthError for missing members; AppError `provider_disabled`, or `validation_failed` for
 * an unknown provider
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
  const found = [...issuers].find(([name, known]) => name === provider || (known !== '' && known === issuer));
  if (found === undefined)
    throw errors.validation_failed({ message: `Custom OIDC provider ${quote(provider)} not allowed` });
  const [name, knownIssuer] = found;
  // Each tenant of Azure and each realm of Keycloak is an issuer.
  const shown = name === 'azure' || name === 'keycloak' ? issuer || knownIssuer : knownIssuer;
  throw errors.provider_disabled({ message: `Provider (issuer ${quote(shown)}) is not enabled` });
}

/** Limits what error messages echo. */
const maxShownChars = 64;

function quote(text: string): string {
  return JSON.stringify(text.slice(0, maxShownChars));
}

/**
 * Routes of GoTrue's features that are not supported yet. Responses are those of a server that has
 * them disabled.
 */
export const addDisabledRoutes: AddRoutes = (api, context) => {
  const schema = { hide: true };
  const refuseLinking = async (request: FastifyRequest): Promise<never> => {
    await authenticateUser(request, context);
    throw errors.manual_linking_disabled();
  };
  api.get('/user/identities/authorize', { schema, exposeHeadRoute: false }, refuseLinking);
  api.delete('/user/identities/:identity_id', { schema }, refuseLinking);

  const refuseSaml = async (): Promise<never> => {
    await Promise.resolve();
    throw errors.saml_provider_disabled();
  };
  // Rejects before the body is read.
  const saml = { schema, onRequest: refuseSaml };
  api.post('/sso', saml, refuseSaml);
  api.post('/sso/saml/acs', saml, refuseSaml);
  api.get('/sso/saml/metadata', { ...saml, exposeHeadRoute: false }, refuseSaml);
};
