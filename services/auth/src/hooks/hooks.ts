import type { JsonObject } from '@tollgate/kit/json';
import type { BaseContext } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { NewUser } from '../users/new-user.ts';
import { toUserJson, type User } from '../users/user.ts';
import type { HookCaller } from './caller.ts';

export interface HooksContext extends BaseContext {
  readonly hooks: Pick<HookCaller, 'enabled' | 'call'>;
}

/**
 * Lets a hook reject a user who is about to be created.
 *
 * @throws AppError the error of the hook, or `unknown` for the decision `reject`
 */
export async function checkNewUser(
  { hooks }: HooksContext,
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
export function reportNewUser(
  { hooks, background }: HooksContext,
  user: User,
  metadata: RequestMetadata,
): void {
  if (!hooks.enabled.has('AFTER_USER_CREATED')) return;
  background.run('hook for a new user', async () => {
    await hooks.call('AFTER_USER_CREATED', { user: toUserJson(user) }, metadata);
  });
}
