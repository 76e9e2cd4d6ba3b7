import type { RequestFacts } from '../../domain/request-facts.ts';
import { isBanned, type User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { type Contact, readContact } from '../contact/read-contact.ts';
import { createStartSession, type IssueDeps, type IssuedSession } from '../sessions/start-session.ts';

/** Email or phone, and the password. */
export interface PasswordSignIn {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  readonly aud: string;
}

/** Signs in a user by password. */
export type SignInWithPassword = (input: PasswordSignIn, facts: RequestFacts) => Promise<IssuedSession>;

/** What that takes. */
export type PasswordSignInDeps = IssueDeps &
  DepsWith<'store' | 'random' | 'passwords', 'externalEmailEnabled' | 'externalPhoneEnabled'>;

/**
 * Creates {@link SignInWithPassword}: one statement to find the user, one hash, one statement to start the session. A user
 * who does not exist costs the same hash.
 */
export function createSignInWithPassword(deps: PasswordSignInDeps): SignInWithPassword {
  const { store, passwords } = deps;
  const startSession = createStartSession(deps);

  async function verify(user: User | undefined, password: string): Promise<User> {
    const matches =
      user?.passwordHash === undefined
        ? await passwords.verifyNobody(password)
        : await passwords.verify(password, user.passwordHash);
    if (user === undefined || !matches) throw errors.invalid_credentials();
    return user;
  }

  async function renewHash({ id, passwordHash: from }: User, password: string): Promise<void> {
    if (from === undefined || passwords.isCurrent(from)) return;
    await store.users.rehashPassword(id, { from, to: await passwords.hash(password) });
  }

  return async ({ password = '', aud, ...contacts }, facts) => {
    const contact = readContact(contacts, {
      both: 'Only an email address or phone number should be provided on login.',
      neither: 'missing email or phone',
    });
    checkEnabled(contact, deps.settings);
    const found =
      contact.kind === 'email'
        ? await store.users.findByEmail(contact.email, aud)
        : await store.users.findByPhone(contact.phone, aud);
    const user = await verify(found, password);
    checkUsable(user, contact, facts.nowMs);
    await renewHash(user, password);
    return startSession(user, { method: 'password', traits: { provider: contact.kind } }, facts);
  };
}

function checkEnabled(contact: Contact, settings: PasswordSignInDeps['settings']): void {
  if (contact.kind === 'email' && !settings.externalEmailEnabled) throw errors.email_provider_disabled();
  if (contact.kind === 'phone' && !settings.externalPhoneEnabled) throw errors.phone_provider_disabled();
}

/** After the password: whoever does not know it learns nothing of the user. */
function checkUsable(user: User, contact: Contact, nowMs: number): void {
  if (isBanned(user, nowMs)) throw errors.user_banned({ httpStatus: 400 });
  if (contact.kind === 'email' && user.emailConfirmedAt === undefined) throw errors.email_not_confirmed();
  if (contact.kind === 'phone' && user.phoneConfirmedAt === undefined) throw errors.phone_not_confirmed();
}
