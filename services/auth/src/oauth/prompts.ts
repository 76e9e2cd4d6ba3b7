import { authenticatedAt } from '../sessions/assurance.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import type { Authorization } from './authorization-store.ts';
import { splitScope } from './scopes.ts';

interface SignedIn {
  readonly user: Pick<User, 'id'>;
  readonly session: Pick<Session, 'createdAt' | 'methods'>;
}

/** Whether the request has this value of `prompt`. @see OpenID Connect Core §3.1.2.1 */
export function hasPrompt({ prompt }: Pick<Authorization, 'prompt'>, value: string): boolean {
  return splitScope(prompt ?? '').includes(value);
}

/**
 * Whether the user has to sign in again, since `prompt=login`, `max_age` or `id_token_hint` exclude
 * this session. Ages are those at the time of the request: the user may take longer to decide.
 */
export function mustSignInAgain(authorization: Authorization, owner: SignedIn): boolean {
  const { max_age: maxAge, created_at: createdAt } = authorization;
  const authenticatedMs = authenticatedAt(owner.session).getTime();
  if (isOtherUser(authorization, owner)) return true;
  if (hasPrompt(authorization, 'login') && !isAfterRequest(authorization, owner)) return true;
  return maxAge !== null && authenticatedMs < createdAt.getTime() - maxAge * 1000;
}

/** Whether another user than that of `id_token_hint` is signed in. */
export function isOtherUser({ hinted_user_id: hinted }: Authorization, { user }: SignedIn): boolean {
  return hinted !== null && hinted !== user.id;
}

/** Whether the user has authenticated since the request. */
export function isAfterRequest({ created_at: createdAt }: Authorization, { session }: SignedIn): boolean {
  return authenticatedAt(session) > createdAt;
}
