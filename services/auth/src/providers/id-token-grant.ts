import { OAuthClientError } from '@tollgate/oauth2-client';
import { errors, OAuthError, shorten } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { ProviderConnection } from '../identity-providers/connection.ts';
import { type Profile, ProviderError } from '../identity-providers/provider.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import type { User } from '../users/user.ts';
import { toIdentity } from './account.ts';
import type { ProvidersContext } from './connections.ts';
import { findOwner, refuseUnconfirmed } from './sign-in.ts';

/** The members of an ID token grant. */
export interface IdTokenRequest {
  readonly idToken?: string | undefined;
  /** Access token of the same response of the provider. */
  readonly accessToken?: string | undefined;
  readonly nonce?: string | undefined;
  readonly provider?: string | undefined;
  readonly clientId?: string | undefined;
  readonly issuer?: string | undefined;
  /** Authenticates who links the identity; undefined for a sign-in. */
  readonly authenticate?: (() => Promise<User>) | undefined;
}

/**
 * Signs a user in with an ID token that the client has got from a provider.
 *
 * @throws OAuthError for missing members and invalid tokens; AppError `provider_disabled`,
 * `validation_failed` for an unknown provider, and as `findOrCreateOwner` and `linkToUser`
 */
export async function signInWithIdToken(
  context: ProvidersContext,
  request: IdTokenRequest,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const { idToken = '', accessToken = '', nonce = '', authenticate } = request;
  const { settings } = context;
  if (idToken === '') throw invalid('id_token required');
  const connection = await findConnection(context, request);
  const linkTo = await authenticate?.();
  const profile = await connection.readIdToken({ idToken, accessToken, nonce }).catch((thrown: unknown) => {
    throw toGrantError(context, thrown);
  });
  const signedIn = { identity: toIdentity(connection.name, profile), linkingUserId: linkTo?.id };
  const { user, mustConfirm } = await findOwner(context, connection, signedIn, metadata);
  const flow = { provider: connection.name, redirectTo: settings.siteUrl };
  if (mustConfirm) return refuseUnconfirmed(context, { flow, user }, metadata);
  const signIn = { user, method: 'oauth', traits: { provider: connection.name } };
  return startSession(context, signIn, metadata);
}

function invalid(description: string): OAuthError {
  return new OAuthError('invalid request', description);
}

type IdTokenReader = ProviderConnection & {
  readonly readIdToken: (presented: {
    readonly idToken: string;
    readonly accessToken: string;
    readonly nonce: string;
  }) => Promise<Profile>;
};

/** Issuers of providers, for requests that name an issuer. */
const issuers: ReadonlyMap<string, string> = new Map([
  ['apple', 'https://appleid.apple.com'],
  ['azure', 'https://login.microsoftonline.com/common/v2.0'],
  ['facebook', 'https://www.facebook.com'],
  ['google', 'https://accounts.google.com'],
  ['kakao', 'https://kauth.kakao.com'],
  ['keycloak', ''],
]);

async function findConnection(
  { providers }: ProvidersContext,
  { provider = '', clientId = '', issuer = '' }: IdTokenRequest,
): Promise<IdTokenReader> {
  if (provider === '' && (clientId === '' || issuer === ''))
    throw invalid('provider or client_id and issuer required');
  const [name, knownIssuer] = [...issuers].find(
    ([known, url]) => known === provider || (provider === '' && isIssuer(issuer, known, url)),
  ) ?? [provider, issuer];
  const connection =
    (await providers.find(name)) ??
    (provider === '' && !issuers.has(name) ? providers.findIssuer(issuer, clientId) : undefined);
  if (connection !== undefined && hasIdTokens(connection)) return connection;
  if (!issuers.has(name))
    throw errors.validation_failed({ message: `Custom OIDC provider ${quote(provider)} not allowed` });
  // Each tenant of Azure and each realm of Keycloak is an issuer.
  const shown = name === 'azure' || name === 'keycloak' ? issuer || knownIssuer : knownIssuer;
  throw errors.provider_disabled({ message: `Provider (issuer ${quote(shown)}) is not enabled` });
}

function isIssuer(issuer: string, name: string, known: string): boolean {
  if (name === 'azure' && /^https:\/\/login\.microsoftonline\.com\/[^/]+\/v2\.0\/?$/.test(issuer))
    return true;
  return known !== '' && issuer === known;
}

function hasIdTokens(connection: ProviderConnection): connection is IdTokenReader {
  return connection.readIdToken !== undefined;
}

function quote(text: string): string {
  return JSON.stringify(shorten(text));
}

function toGrantError({ logger }: ProvidersContext, thrown: unknown): Error {
  if (!(thrown instanceof OAuthClientError) && !(thrown instanceof ProviderError))
    return errors.unexpected_failure({ cause: thrown });
  logger.info({ err: thrown }, 'rejected ID token');
  const claim = 'claim' in thrown ? thrown.claim : '';
  if (claim === 'nonce') return invalid(thrown.message.replace('id_token: ', ''));
  return invalid(claim === 'aud' || claim === 'azp' ? 'Unacceptable audience in id_token' : 'Bad ID token');
}
