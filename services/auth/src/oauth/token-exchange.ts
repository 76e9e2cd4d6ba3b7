import { auditEntry } from '../audit/audit-log.ts';
import { OAuthError } from '../errors.ts';
import { signAccessToken } from '../sessions/access-token.ts';
import { accessTokenType } from './client-metadata.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier } from './find-client.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';
import { findActiveToken, type PresentedToken } from './presented-token.ts';
import { grantScopes, splitScope } from './scopes.ts';

/** @see RFC 8693 §3 https://www.rfc-editor.org/rfc/rfc8693#section-3 */
const accessTokenUrn = 'urn:ietf:params:oauth:token-type:access_token';
const tokenUrns: readonly string[] = [accessTokenUrn, 'urn:ietf:params:oauth:token-type:jwt'];

export const exchangeParameters = [
  ...['subject_token', 'subject_token_type', 'actor_token', 'requested_token_type', 'audience'],
] as const;

/**
 * Gives a service a token of the user whose token it has got, for another service and with fewer
 * scopes. It belongs to the same session, so that it ends with it, and expires with the first.
 *
 * @throws OAuthError `invalid_request`, `unauthorized_client`, `invalid_target`, `invalid_scope`
 * @see RFC 8693 §2 https://www.rfc-editor.org/rfc/rfc8693#section-2
 */
export async function grantTokenExchange(
  context: GrantContext,
  client: StoredClient,
  request: TokenRequest,
): Promise<TokenResponse> {
  checkRequest(client, request);
  const { parameter, metadata, thumbprint } = request;
  const subject = await findActiveToken(context, { token: parameter('subject_token'), clientId: client.id });
  // RFC 8693 §2.2.2.
  if (subject?.kind !== 'access' || !mayExchange(client, subject))
    throw new OAuthError('invalid_request', 'subject_token is not a token of a user for this service');
  const { user, session, claims } = subject;
  const scope = grantScopes(request.scope || undefined, allowedScopes(client, claims.scope)).join(' ');
  const granted = {
    // The service has no authorization details of its own.
    ...{ id: client.id, identifier: clientIdentifier(client), scope, details: [] },
    resource: findAudience(client, request),
    tokenType: accessTokenType(client.metadata),
    thumbprint: null,
  };
  const ttlMs = context.settings.oauthServerClientTokenTtlMs;
  const expiresAt = Math.floor((metadata.nowMs + ttlMs) / 1000);
  const token = await signAccessToken(
    context,
    {
      ...{ user, session: { ...session, client: granted }, method: 'token_exchange' },
      maxExpiresAt: typeof claims.exp === 'number' ? Math.min(claims.exp, expiresAt) : expiresAt,
      // RFC 8693 §4.1: the chain of services, the last one first.
      actor: { sub: granted.identifier, ...(isActor(claims.act) && { act: claims.act }) },
      thumbprint,
    },
    metadata,
  );
  const traits = { client_id: client.id, audience: granted.resource, ...(scope !== '' && { scope }) };
  // Before the response: no token without an entry.
  await context.store.audit.append(auditEntry(user, 'token_exchanged', { metadata, traits }));
  return {
    access_token: token.accessToken,
    issued_token_type: accessTokenUrn,
    expires_in: token.expiresInSeconds,
    ...(scope !== '' && { scope }),
  };
}

function checkRequest(client: StoredClient, { parameter, details = '' }: TokenRequest): void {
  if (client.client_type === 'public')
    throw new OAuthError('unauthorized_client', 'A public client may not exchange tokens');
  for (const name of ['subject_token', 'subject_token_type'])
    if (parameter(name) === '') throw new OAuthError('invalid_request', `${name} is required`);
  if (parameter('actor_token') !== '')
    throw new OAuthError('invalid_request', 'actor_token is not supported: the client is the actor');
  if (details !== '')
    throw new OAuthError(
      'invalid_authorization_details',
      'authorization_details are not supported by this grant_type',
    );
  for (const name of ['subject_token_type', 'requested_token_type'])
    if (![...tokenUrns, ''].includes(parameter(name)))
      throw new OAuthError('invalid_request', `${name} must be ${accessTokenUrn}`);
}

/** A token for a resource may be exchanged by the service that it is for. */
function mayExchange(
  { audiences }: StoredClient,
  { session, claims }: Extract<PresentedToken, { kind: 'access' }>,
): boolean {
  const isForResource = session.client?.resource !== undefined && session.client.resource !== null;
  const isExchanged = claims.act !== undefined;
  return (!isForResource && !isExchanged) || audiences.includes(String(claims.aud));
}

/** Scopes can only be fewer. The session of a user has none, and may do what the client may do. */
function allowedScopes({ scopes }: StoredClient, granted: unknown): readonly string[] {
  if (typeof granted !== 'string') return scopes;
  const names = splitScope(granted);
  return scopes.filter((scope) => names.includes(scope));
}

function findAudience({ audiences }: StoredClient, { parameter, resources }: TokenRequest): string {
  const requested = [...new Set([...resources, ...[parameter('audience')].filter((name) => name !== '')])];
  const [audience] = requested;
  if (audience === undefined || requested.length > 1)
    throw new OAuthError('invalid_target', 'Exactly one audience or resource is required');
  if (!audiences.includes(audience))
    throw new OAuthError('invalid_target', 'The client may not use this audience');
  return audience;
}

/** The claim is of this server. */
function isActor(act: unknown): act is { readonly sub: string } {
  return typeof act === 'object' && act !== null;
}
