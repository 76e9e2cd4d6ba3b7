import type { JsonObject } from '@tollgate/kit/json';
import { Type } from 'typebox';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { type AddRoutes, uuidParameter } from '../http/api.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { authenticateUser } from '../sessions/authenticate.ts';
import type { User } from '../users/user.ts';
import type { AuthorizationContext } from './authorize.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { OAuthClient } from './client-store.ts';
import { splitScope } from './scopes.ts';

const grantQuery = Type.Object({ client_id: Type.Optional(Type.String()) });

/** `/user/oauth/grants`: clients that the user has given access. */
export const addGrantRoutes: AddRoutes<AuthorizationContext> = (api, context) => {
  const { store } = context;

  api.get('/user/oauth/grants', async (request, reply) => {
    requireOAuthServer(context);
    const { user } = await authenticateUser(request, context);
    const grants = await store.authorizations.listGrants(user.id);
    return reply.send(
      grants.map((grant) => ({
        client: clientJson({ ...grant, id: grant.client_id }),
        scopes: splitScope(grant.scopes),
        granted_at: grant.granted_at.toISOString(),
      })),
    );
  });

  api.delete('/user/oauth/grants', { schema: { querystring: grantQuery } }, async (request, reply) => {
    requireOAuthServer(context);
    const { user } = await authenticateUser(request, context);
    const { client_id: id } = request.query;
    if (id === undefined) throw errors.validation_failed({ message: 'client_id is required' });
    const clientId = uuidParameter({ client_id: id }, 'client_id');
    await revokeGrant(context, { user, clientId }, requestMetadata(request, context));
    return reply.code(204).send();
  });
};

/**
 * Revokes the consent of a user to a client, and ends the sessions of the client.
 *
 * @throws AppError `oauth_consent_not_found`
 */
export async function revokeGrant(
  { store }: AuthorizationContext,
  { user, clientId }: { readonly user: User; readonly clientId: string },
  metadata: RequestMetadata,
): Promise<void> {
  const audit = auditEntry(user, 'oauth_grant_revoked', { metadata, traits: { client_id: clientId } });
  const at = new Date(metadata.nowMs);
  const isRevoked = await store.transaction(async ({ authorizations }) => {
    await authorizations.lockOwner(user.id);
    return authorizations.revokeGrant({ userId: user.id, clientId, at, audit });
  });
  if (!isRevoked) throw errors.oauth_consent_not_found();
}

export function clientJson({
  id,
  client_name: name,
  client_uri: uri,
  logo_uri: logo,
}: Pick<OAuthClient, 'id' | 'client_name' | 'client_uri' | 'logo_uri'>): JsonObject {
  return { id, name: name ?? '', uri: uri ?? '', logo_uri: logo ?? '' };
}
