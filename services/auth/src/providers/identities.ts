import { Type } from 'typebox';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { type AddRoutes, uuidParameter } from '../http/api.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import { requireRecentSignIn, requireSecondFactor } from '../sessions/assurance.ts';
import { authenticateUser } from '../sessions/authenticate.ts';
import type { Session } from '../sessions/store.ts';
import { type Identity, toUserJson, type User, type UserChanges } from '../users/user.ts';
import type { ProvidersContext } from './connections.ts';
import { openBrowserSecret } from './flow.ts';
import { startLinking } from './linking.ts';
import { authorizeQuery, findConnection, readQuery, readStart } from './routes.ts';

/** `/user/identities`: lists, links and unlinks identities of the caller. */
export const addIdentityRoutes: AddRoutes<ProvidersContext> = (api, context) => {
  api.get('/user/identities', async (request, reply) => {
    const { user } = await authenticateUser(request, context);
    return reply.send({ identities: toUserJson(user).identities });
  });

  const authorize = { schema: { querystring: authorizeQuery }, exposeHeadRoute: false };
  api.get('/user/identities/authorize', authorize, async (request, reply) => {
    const caller = await authenticateUser(request, context);
    checkMayLink(context, caller);
    const query = readQuery(request);
    const connection = await findConnection(context, query.get('provider') ?? '');
    const start = {
      ...readStart(request, query, context),
      linkingUserId: caller.user.id,
      browserSecret: openBrowserSecret(request, reply, { ...context, isFormPost: connection.isFormPost }),
    };
    const url = await startLinking(context, connection, start, requestMetadata(request, context));
    if (query.get('skip_http_redirect') === 'true') return reply.send({ url });
    return reply.header('cache-control', 'no-store').redirect(url, 302);
  });

  const parameters = Type.Object({ identity_id: Type.String() });
  api.delete('/user/identities/:identity_id', { schema: { params: parameters } }, async (request, reply) => {
    const caller = await authenticateUser(request, context);
    checkMayLink(context, caller);
    const identityId = uuidParameter(request.params, 'identity_id');
    await unlinkIdentity(context, caller.user, identityId, requestMetadata(request, context));
    return reply.send({});
  });
};

/** The user who links or unlinks an identity. */
interface IdentityCaller {
  readonly user: User;
  readonly session: Session | undefined;
}

/** @throws AppError `manual_linking_disabled`, `insufficient_aal`, `reauthentication_needed` */
export function checkMayLink(context: ProvidersContext, { user, session }: IdentityCaller): void {
  if (!context.settings.manualLinkingEnabled) throw errors.manual_linking_disabled();
  requireSecondFactor(user, session, {
    message: 'AAL2 required to link or unlink identities',
    httpStatus: 403,
  });
  requireRecentSignIn(context, { user, session });
}

/**
 * Removes an identity. The user keeps another one to sign in with.
 *
 * @throws AppError `single_identity_not_deletable`, `identity_not_found`,
 * `email_conflict_identity_not_deletable`
 */
export async function unlinkIdentity(
  context: ProvidersContext,
  user: User,
  identityId: string,
  metadata: RequestMetadata,
): Promise<void> {
  const removed = user.identities.find(({ id }) => id === identityId);
  if (user.identities.length <= 1) throw errors.single_identity_not_deletable();
  if (removed === undefined) throw errors.identity_not_found();
  const remaining = user.identities.filter(({ id }) => id !== identityId);
  const providers = [...new Set(remaining.map(({ provider }) => provider))];
  await context.store.transaction(async (store) => {
    // One of concurrent requests must leave the last identity.
    if (!(await store.providers.deleteIdentity(user.id, identityId)))
      throw errors.single_identity_not_deletable();
    const contacts =
      removed.provider === 'phone'
        ? { phone: null, phoneConfirmedAt: null }
        : await replaceEmail({ ...context, store }, user, remaining);
    const updated = await store.users.update(
      user.id,
      { appMetadata: { provider: providers[0] ?? '', providers }, ...contacts },
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
 * Replaces an email that no remaining identity has: by one of theirs that no other user has, first
 * by a verified one, or by none. Tokens sent to the old email, and pending changes, are withdrawn.
 *
 * @throws AppError `email_conflict_identity_not_deletable`
 */
async function replaceEmail(
  { store, settings }: ProvidersContext,
  user: User,
  remaining: readonly Identity[],
): Promise<UserChanges> {
  if (remaining.some(({ email }) => email === user.email)) return {};
  const next = await findFreeIdentity(store, user, remaining);
  if (next === undefined) throw errors.email_conflict_identity_not_deletable();
  await store.oneTimeTokens.clear(user.id, { clearSentAt: true });
  const isConfirmed = next.email !== '' && (hasVerifiedEmail(next) || settings.mailerAutoconfirm);
  return {
    email: next.email === '' ? null : next.email,
    newEmail: null,
    emailChangeConfirmStatus: 0,
    newPhone: null,
    ...(!isConfirmed && { emailConfirmedAt: null, userMetadata: { email_verified: false } }),
  };
}

/** The first identity whose email is not of another user; identities without email come last. */
async function findFreeIdentity(
  store: ProvidersContext['store'],
  user: User,
  identities: readonly Identity[],
): Promise<Identity | undefined> {
  const preferred = identities.toSorted((a, b) => emailRank(a) - emailRank(b));
  for (const identity of preferred) {
    const isFree =
      identity.email === '' || (await store.users.findByEmail(identity.email, user.aud)) === undefined;
    if (isFree) return identity;
  }
  return undefined;
}

function emailRank(identity: Identity): number {
  if (identity.email === '') return 2;
  return hasVerifiedEmail(identity) ? 0 : 1;
}

function hasVerifiedEmail({ data }: Identity): boolean {
  return String(data.email_verified) === 'true';
}
