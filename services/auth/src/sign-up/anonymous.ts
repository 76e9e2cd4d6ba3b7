import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import type { NewUser } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import { checkMetadata } from '../users/user-json.ts';

/** What somebody without email and phone signs up with. */
interface AnonymousSignUp {
  /** What the user says of themselves. */
  readonly data?: JsonObject | undefined;
  readonly aud: string;
}

/**
 * Signs somebody up who is known by nothing but their session; `PUT /user` with an email or phone makes a user like others of them.
 *
 * @throws AppError `anonymous_provider_disabled`, `signup_disabled`, `validation_failed`.
 */
export type SignUpAnonymously = (input: AnonymousSignUp, metadata: RequestMetadata) => Promise<IssuedSession>;

/** Creates {@link SignUpAnonymously}. */
export function createSignUpAnonymously(deps: Context): SignUpAnonymously {
  const { store, random, settings } = deps;

  return async ({ data = {}, aud }, metadata) => {
    if (!settings.externalAnonymousUsersEnabled) throw errors.anonymous_provider_disabled();
    if (settings.disableSignup) throw errors.signup_disabled();
    checkMetadata({ userMetadata: data });
    const user: NewUser = {
      id: random.uuid(),
      aud,
      role: settings.jwtDefaultGroupName,
      email: '',
      phone: '',
      passwordHash: undefined,
      emailConfirmedAt: undefined,
      phoneConfirmedAt: undefined,
      appMetadata: {},
      userMetadata: data,
      isAnonymous: true,
      createdAt: new Date(metadata.nowMs),
      identities: [],
    };
    await store.users.insert(user, auditEntry(user, 'user_signedup', { metadata }));
    const inserted = await store.users.findById(user.id);
    if (inserted === undefined) throw errors.user_not_found();
    return startSession(deps, { user: inserted, method: 'anonymous' }, metadata);
  };
}
