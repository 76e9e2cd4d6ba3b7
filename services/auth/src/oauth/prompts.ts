import type { SignInFreshness } from '../identity-providers/connection.ts';
import { authenticatedAt } from '../sessions/assurance.ts';
import type { SessionsContext } from '../sessions/context.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import type { Authorization } from './authorization-store.ts';
import { splitScope } from './scopes.ts';

interface SignedIn {
  readonly user: Pick<User, 'id'>;
  readonly authenticatedAt: Date;
}

/** Value of the claim `amr` of a session that began at an external provider. */
const providerMethod = 'oauth';

/**
 * When the user of a session has authenticated last: at the provider, if it had a session of its
 * own, and the user has not confirmed ours since.
 */
export async function findAuthenticatedAt(
  { store }: SessionsContext,
  session: Pick<Session, 'id' | 'createdAt' | 'methods'>,
): Promise<Date> {
  const { authenticated_at: earlier } =
    (session.methods[0]?.method === providerMethod && (await store.authentications.find(session.id))) || {};
  return earlier ?? authenticatedAt(session);
}

/** The sign-in at a provider that is enough for a request of a client. */
export function requiredFreshness(authorization: Authorization | undefined): SignInFreshness {
  return {
    isAgain: authorization !== undefined && hasPrompt(authorization, 'login'),
    maxAgeSeconds: authorization?.max_age ?? undefined,
  };
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
  const authenticatedMs = owner.authenticatedAt.getTime();
  if (isOtherUser(authorization, owner)) return true;
  if (hasPrompt(authorization, 'login') && !isAfterRequest(authorization, owner)) return true;
  return maxAge !== null && authenticatedMs < createdAt.getTime() - maxAge * 1000;
}

/** Whether another user than that of `id_token_hint` is signed in. */
export function isOtherUser({ hinted_user_id: hinted }: Authorization, { user }: SignedIn): boolean {
  return hinted !== null && hinted !== user.id;
}

/** Whether the user has authenticated since the request. */
export function isAfterRequest(
  { created_at: createdAt }: Authorization,
  { authenticatedAt: at }: SignedIn,
): boolean {
  return at > createdAt;
}
