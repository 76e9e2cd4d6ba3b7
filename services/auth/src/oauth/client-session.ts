import { isFirstPartyClient } from '@tollgate/admin-clients/first-party';
import { OAuthError } from '../errors.ts';
import type { Authentication } from '../sessions/authentication-store.ts';
import { prepareSession, storeSession } from '../sessions/issue.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { isBanned, type User } from '../users/user.ts';
import { detailsMember, narrowDetails } from './authorization-details.ts';
import type { Authorization } from './authorization-store.ts';
import { accessTokenType } from './client-metadata.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier } from './find-client.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';
import { makeIdToken } from './id-token.ts';
import { splitScope } from './scopes.ts';

/** Value of the claim `amr`. GoTrue cannot read other ones, and knows this grant only. */
const method = 'oauth_provider/authorization_code';

/** A request that a user has approved. */
interface Approved {
  readonly authorization: Authorization;
  readonly user: User;
  readonly grant: 'authorization_code' | 'device_code';
}

/**
 * Exchanges an approved request for a session of the client. Undefined: another request has done
 * so, as `spend` says.
 *
 * @throws OAuthError `access_denied`, `invalid_authorization_details`
 */
export async function startClientSession(
  context: GrantContext,
  client: StoredClient,
  {
    approved: { authorization, user, grant },
    spend,
    request: { metadata, thumbprint, details: narrowed },
  }: {
    readonly approved: Approved;
    readonly spend: (store: GrantContext['store']) => Promise<boolean>;
    readonly request: Pick<TokenRequest, 'metadata' | 'thumbprint' | 'details'>;
  },
): Promise<TokenResponse | undefined> {
  if (isBanned(user, metadata.nowMs)) {
    recordFailedSignIn(context, user, { method, reason: 'user_banned' }, metadata);
    throw new OAuthError('access_denied', 'User is banned');
  }
  const { id: sessionId, scope, resource } = authorization;
  const authentication = findAuthentication(authorization);
  // GoTrue may have approved the request, whose pages do not show the details to the user.
  const { details = [] } = (authentication && authorization.authorization_details) ?? {};
  const tokenDetails = narrowDetails(narrowed, details);
  const traits = { provider_type: `oauth_provider_${grant}`, client_id: client.id };
  const granted = {
    ...{ id: client.id, identifier: clientIdentifier(client), scope, resource, details },
    tokenType: accessTokenType(client.metadata),
    // RFC 9449 §5: those of other clients are bound by the authentication.
    thumbprint: client.client_type === 'public' ? (thumbprint ?? null) : null,
  };
  const signIn = { user, method, traits, sessionId, client: granted, details: tokenDetails, thumbprint };
  const prepared = await prepareSession(context, signIn, metadata);
  // In one transaction: a failure does not spend the code.
  const session = await context.store.transaction(async (within) => {
    await within.authorizations.lockOwner(user.id);
    if (!(await spend(within))) return undefined;
    const stored = await storeSession({ ...context, store: within }, prepared, metadata);
    // Others than these get access without a sign-in, which a sign-out does not end.
    if (splitScope(scope).includes('openid') || isFirstPartyClient(client.id))
      await within.authentications.keep(sessionId);
    return stored;
  });
  if (session === undefined) return undefined;
  const { accessToken } = session;
  const idToken = makeIdToken(context, {
    ...{ user, client, sessionId, accessToken, scope, authentication },
    nonce: authorization.nonce,
  });
  return {
    access_token: accessToken,
    expires_in: session.expiresInSeconds,
    ...(client.grant_types.includes('refresh_token') && { refresh_token: session.refreshToken }),
    ...(idToken !== undefined && { id_token: idToken }),
    scope,
    ...detailsMember(tokenDetails),
  };
}

/** Undefined for a request that a token without a session approved, or GoTrue. */
function findAuthentication({ authenticated_at, aal, methods }: Authorization): Authentication | undefined {
  if (authenticated_at === null || aal === null || methods === null) return undefined;
  return { authenticated_at, aal, methods };
}
