import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';
import { uuidParameter } from '../http/api.ts';
import { authenticateUser } from '../http/authenticate.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import { toUserJson, type User } from '../users/user.ts';
import { authorizeQuery, findConnection, readQuery, readStart } from './routes.ts';
import { startLinking } from './sign-in.ts';

type Identity = User['identities'][number];

/** `/user/identities`: lists, links and unlinks identities of the caller. */
export const addIdentityRoutes: AddRoutes = (api, context) => {
  api.get('/user/identities', async (request, reply) => {
    const { user } = await authenticateUser(request, context);
    return reply.send({ identities: toUserJson(user).identities });
  });

  const authorize = { schema: { querystring: authorizeQuery }, exposeHeadRoute: false };
  api.get('/user/identities/authorize', authorize, async (request, reply) => {
    const { user } = await authenticateUser(request, context);
    requireManualLinking(context);
    const query = readQuery(request);
    const connection = await findConnection(context, query.get('provider') ?? '');
    const start = { ...readStart(request, query, context), linkingUserId: user.id };
    const url = await startLinking(context, connection, start, requestMetadata(request, context));
    if (query.get('skip_http_redirect') === 'true') return reply.send({ url });
    return reply.header('cache-control', 'no-store').redirect(url, 302);
  });

  const parameters = Type.Object({ identity_id: Type.String() });
  api.delete('/user/identities/:identity_id', { schema: { params: parameters } }, async (request, reply) => {
    const { user } = await authenticateUser(request, context);
    requireManualLinking(context);
    const identityId = uuidParameter(request.params, 'identity_id');
    await unlinkIdentity(context, user, identityId, requestMetadata(request, context));
    return reply.send({});
  });
};

/** @throws AppError `manual_linking_disabled` */
export function requireManualLinking({ settings }: Context): void {
  if (!settings.manualLinkingEnabled) throw errors.manual_linking_disabled();
}

/**
 * Removes an identity. The user keeps another one to sign in with.
 *
 * @throws AppError `single_identity_not_deletable`, `identity_not_found`,
 * `email_conflict_identity_not_deletable`
 */
export async function unlinkIdentity(
  context: Context,
  user: User,
  identityId: string,
  metadata: RequestMetadata,
): Promise<void> {
  const removed = user.identities.find(({ id }) => id === identityId);
  if (user.identities.length <= 1) throw errors.single_identity_not_deletable();
  if (removed === undefined) throw errors.identity_not_found();
  const remaining = user.identities.filter(({ id }) => id !== identityId);
  const providers = [...new Set(remaining.map(({ provider }) => provider))];
  const email = nextEmail(user, removed, remaining);
  await context.store.transaction(async (store) => {
    // Of concurrent requests one leaves the last identity.
    if (!(await store.providers.deleteIdentity(user.id, identityId)))
      throw errors.single_identity_not_deletable();
    const updated = await store.users.update(
      user.id,
      {
        appMetadata: { provider: providers[0] ?? '', providers },
        ...(email !== undefined && { email }),
        ...(removed.provider === 'phone' && { phone: null, phoneConfirmedAt: null }),
      },
      {
        at: new Date(metadata.nowMs),
        audit: auditEntry(user, 'identity_unlinked', {
          metadata,
          traits: { identity_id: identityId, provider: removed.provider, provider_id: removed.providerId },
        }),
      },
    );
    if (!updated.ok) throw errors.email_conflict_identity_not_deletable();
  });
  notify(
    context,
    {
      user,
      kind: 'IDENTITY_UNLINKED_NOTIFICATION',
      variables: { Provider: removed.provider },
    },
    metadata,
  );
}

/**
 * The email that replaces one which only the removed identity had. Undefined: the email stays.
 * Unverified emails do not replace one.
 */
function nextEmail(user: User, removed: Identity, remaining: readonly Identity[]): string | undefined {
  const isShared = remaining.some(({ email, provider }) => provider === 'email' || email === user.email);
  if (removed.email !== user.email || isShared) return undefined;
  return remaining.find(({ email, data }) => email !== '' && data.email_verified === true)?.email;
}
