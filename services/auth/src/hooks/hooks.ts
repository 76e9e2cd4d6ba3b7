import type { JsonObject } from '@tollgate/kit/json';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { signOut } from '../sessions/sessions.ts';
import type { Factor } from '../users/factor.ts';
import type { NewUser } from '../users/new-user.ts';
import { toUserJson, type User } from '../users/user.ts';

/**
 * Lets a hook reject a user who is about to be created.
 *
 * @throws AppError the error of the hook, or `unknown` for the decision `reject`
 */
export async function checkNewUser(
  { hooks }: Context,
  newUser: NewUser,
  metadata: RequestMetadata,
): Promise<void> {
  if (!hooks.enabled.has('BEFORE_USER_CREATED')) return;
  const { decision, message } = await hooks.call(
    'BEFORE_USER_CREATED',
    { user: toNewUserJson(newUser) },
    metadata,
  );
  if (decision === 'reject') throw errors.unknown(message ? { message } : {});
}

/** The time of a row that does not exist yet, as GoTrue writes it. */
const noTime = '0001-01-01T00:00:00Z';

/** Has no identities yet. */
function toNewUserJson(user: NewUser): JsonObject {
  return {
    id: user.id,
    aud: user.aud,
    role: user.role,
    email: user.email,
    phone: user.phone,
    app_metadata: user.appMetadata,
    user_metadata: user.userMetadata,
    identities: [],
    created_at: noTime,
    updated_at: noTime,
    is_anonymous: user.isAnonymous,
  };
}

/** Tells a hook about a new user, after the response: it cannot reject the user any more. */
export function reportNewUser({ hooks, background }: Context, user: User, metadata: RequestMetadata): void {
  if (!hooks.enabled.has('AFTER_USER_CREATED')) return;
  background.run('hook for a new user', async () => {
    await hooks.call('AFTER_USER_CREATED', { user: toUserJson(user) }, metadata);
  });
}

/**
 * Lets a hook reject a sign-in by password, after the password has been verified.
 *
 * @throws AppError `invalid_credentials` for the decision `reject`, or the error of the hook
 */
export async function checkPasswordAttempt(
  context: Context,
  { user, valid }: { readonly user: User; readonly valid: boolean },
  metadata: RequestMetadata,
): Promise<void> {
  const reply = await context.hooks.call(
    'PASSWORD_VERIFICATION_ATTEMPT',
    { user_id: user.id, valid },
    metadata,
  );
  if (reply.decision !== 'reject') return;
  if (String(reply.should_logout_user) === 'true') await signOutEverywhere(context, user, metadata);
  throw errors.invalid_credentials({
    message: reply.message || 'Further password verification attempts will be rejected.',
  });
}

/**
 * Lets a hook reject a second factor, after the code has been verified. A rejection ends all
 * sessions of the user.
 *
 * @throws AppError `mfa_verification_rejected` for the decision `reject`, or the error of the hook
 */
export async function checkFactorAttempt(
  context: Context,
  { user, factor, valid }: { readonly user: User; readonly factor: Factor; readonly valid: boolean },
  metadata: RequestMetadata,
): Promise<void> {
  const reply = await context.hooks.call(
    'MFA_VERIFICATION_ATTEMPT',
    { user_id: user.id, factor_id: factor.id, factor_type: factor.type, valid },
    metadata,
  );
  if (reply.decision !== 'reject') return;
  await signOutEverywhere(context, user, metadata);
  throw errors.mfa_verification_rejected(reply.message ? { message: reply.message } : {});
}

async function signOutEverywhere(context: Context, user: User, metadata: RequestMetadata): Promise<void> {
  await signOut(context, { user, sessionId: undefined, scope: 'global' }, metadata);
}
