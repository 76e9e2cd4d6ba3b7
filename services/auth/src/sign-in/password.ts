import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { passwordWeakness } from '../passwords/policy.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { type Contact, readContact } from '../sign-up/input.ts';
import { isBanned, type User } from '../users/user.ts';
import { GuessLimiter } from './guess-limiter.ts';

/** Email or phone, and the password. */
interface PasswordSignIn {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  readonly aud: string;
}

/** Signs in a user by password. */
export type SignInWithPassword = (input: PasswordSignIn, metadata: RequestMetadata) => Promise<IssuedSession>;

/**
 * Creates {@link SignInWithPassword}: a statement for the limits of guesses, one to find the user, one hash, one statement to start
 * the session. A user who does not exist costs the same hash.
 */
export function createSignInWithPassword(deps: Context): SignInWithPassword {
  const { store, passwords, leakedPasswords, settings } = deps;
  const limiter = new GuessLimiter(deps);

  /** Nobody is kept out because that cannot be told. */
  async function isLeaked(password: string): Promise<boolean> {
    try {
      return await leakedPasswords.includes(password);
    } catch {
      return false;
    }
  }

  /** The user whose password it is; undefined for a wrong one. */
  async function verify(
    {
      contact,
      password,
      aud,
    }: { readonly contact: Contact; readonly password: string; readonly aud: string },
    nowMs: number,
  ): Promise<User | undefined> {
    const user =
      contact.kind === 'email'
        ? await store.users.findByEmail(contact.email, aud)
        : await store.users.findByPhone(contact.phone, aud);
    const matches =
      user?.passwordHash === undefined
        ? await passwords.verifyNobody(password)
        : await passwords.verify(password, user.passwordHash, user.id);
    if (user === undefined || !matches) return undefined;
    // Within the guess: an unconfirmed account, which anyone can create for this address, makes no
    // network known.
    checkUsable(user, { contact, settings, nowMs });
    return user;
  }

  async function renewHash({ id, passwordHash: from }: User, password: string): Promise<void> {
    if (from === undefined || passwords.isCurrent(from, id)) return;
    await store.users.rehashPassword(id, { from, to: await passwords.hash(password) });
  }

  return async ({ password = '', aud, ...contacts }, metadata) => {
    const contact = readContact(contacts, {
      both: 'Only an email address or phone number should be provided on login.',
      neither: 'missing email or phone',
    });
    checkEnabled(contact, settings);
    const guess = {
      kind: 'password',
      contact: contact.kind === 'email' ? contact.email : contact.phone,
    } as const;
    const user = await limiter.guess(guess, metadata, () =>
      verify({ contact, password, aud }, metadata.nowMs),
    );
    if (user === undefined) throw errors.invalid_credentials();
    await renewHash(user, password);
    const traits = { provider: contact.kind };
    const [session, leaked] = await Promise.all([
      startSession(deps, { user, method: 'password', traits }, metadata),
      isLeaked(password),
    ]);
    const weakPassword = passwordWeakness(password, settings, { isLeaked: leaked });
    return weakPassword === undefined ? session : { ...session, weakPassword };
  };
}

function checkEnabled(contact: Contact, settings: Settings): void {
  if (contact.kind === 'email' && !settings.externalEmailEnabled) throw errors.email_provider_disabled();
  if (contact.kind === 'phone' && !settings.externalPhoneEnabled) throw errors.phone_provider_disabled();
}

/** After the password: whoever does not know it learns nothing of the user. */
function checkUsable(
  user: User,
  of: {
    readonly contact: Contact;
    readonly settings: Settings;
    readonly nowMs: number;
  },
): void {
  const { contact, settings, nowMs } = of;
  if (isBanned(user, nowMs)) throw errors.user_banned({ httpStatus: 400 });
  const needsEmail = contact.kind === 'email' && !settings.mailerAllowUnverifiedEmailSignIns;
  if (needsEmail && user.emailConfirmedAt === undefined) throw errors.email_not_confirmed();
  if (contact.kind === 'phone' && user.phoneConfirmedAt === undefined) throw errors.phone_not_confirmed();
}
