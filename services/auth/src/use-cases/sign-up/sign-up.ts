import { auditEntry } from '../../domain/audit-entry.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { type Contact, readContact } from '../contact/read-contact.ts';
import { checkPassword } from '../passwords/check-password.ts';
import { createStartSession, type IssueDeps, type IssuedSession } from '../sessions/start-session.ts';
import { actorOf, newContactUser } from '../users/new-user.ts';

/** What somebody signs up with. */
export interface SignUpInput {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  /** What the user says of themselves. */
  readonly data?: JsonObject | undefined;
  readonly aud: string;
}

/** A session at once, or a user who has to confirm the contact first. */
export type SignedUp =
  | { readonly kind: 'session'; readonly session: IssuedSession }
  | { readonly kind: 'user'; readonly user: User };

/** Signs somebody up by email or phone, and password. */
export type SignUp = (input: SignUpInput, facts: RequestFacts) => Promise<SignedUp>;

/** What a sign-up takes. */
export type SignUpDeps = IssueDeps &
  DepsWith<
    'store' | 'random' | 'passwords',
    | 'disableSignup'
    | 'externalEmailEnabled'
    | 'externalPhoneEnabled'
    | 'mailerAutoconfirm'
    | 'smsAutoconfirm'
    | 'passwordMinLength'
    | 'passwordRequiredCharacters'
    | 'jwtDefaultGroupName'
  >;

/** Creates {@link SignUp}. The order of the checks is that which clients of GoTrue know. */
export function createSignUp(deps: SignUpDeps): SignUp {
  const { store, passwords, random, settings } = deps;
  const startSession = createStartSession(deps);

  function check(input: SignUpInput): { readonly contact: Contact; readonly password: string } {
    const { password = '' } = input;
    if (settings.disableSignup) throw errors.signup_disabled();
    if ((input.email ?? '') === '' && (input.phone ?? '') === '') throw errors.anonymous_provider_disabled();
    if (password === '') throw errors.validation_failed({ message: 'Signup requires a valid password' });
    checkPassword(password, settings);
    const contact = readContact(input, {
      both: 'Only an email address or phone number should be provided on signup.',
      neither: 'Only an email address or phone number should be provided on signup.',
    });
    checkEnabled(contact);
    return { contact, password };
  }

  function checkEnabled({ kind }: Contact): void {
    if (kind === 'email' && !settings.externalEmailEnabled)
      throw errors.email_provider_disabled({ httpStatus: 400, message: 'Email signups are disabled' });
    if (kind === 'phone' && !settings.externalPhoneEnabled)
      throw errors.phone_provider_disabled({ httpStatus: 400, message: 'Phone signups are disabled' });
    const autoconfirm = kind === 'email' ? settings.mailerAutoconfirm : settings.smsAutoconfirm;
    if (!autoconfirm)
      throw errors.validation_failed({
        message: `Confirmation of a new ${kind} is not served yet: set ${kind === 'email' ? 'SVC_MAILER_AUTOCONFIRM' : 'SVC_SMS_AUTOCONFIRM'}=true`,
      });
  }

  return async (input, facts) => {
    const { contact, password } = check(input);
    const user = newContactUser({
      id: random.uuid(),
      aud: input.aud,
      role: settings.jwtDefaultGroupName,
      contact,
      passwordHash: await passwords.hash(password),
      confirmed: true,
      userMetadata: input.data ?? {},
      at: new Date(facts.nowMs),
    });
    const audit = auditEntry(actorOf(user), 'user_signedup', { facts, traits: { provider: contact.kind } });
    if (!(await store.users.insert(user, audit))) throw errors.user_already_exists();
    const inserted = await store.users.findById(user.id);
    if (inserted === undefined) throw errors.user_not_found();
    const session = await startSession(
      inserted,
      { method: 'password', traits: { provider: contact.kind } },
      facts,
    );
    return { kind: 'session', session };
  };
}
