import { type AuditActor, auditEntry } from '../../domain/audit-entry.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { readEmail } from '../contact/read-contact.ts';
import type { LinkSettingName } from '../links/link-tokens.ts';
import { createMakeLink, type MadeLink, type MadeLinkKind } from '../links/make-link.ts';
import { type CheckPasswordDeps, checkPassword } from '../passwords/check-password.ts';
import { subjectOf } from './admin-user-input.ts';
import { createPrepareUnconfirmed, type UnconfirmedDeps } from './unconfirmed-user.ts';

/** A link that an administrator wants to hand over. */
export interface WantedLink {
  /** `signup`, `magiclink`, `recovery`, `invite`, `email_change_current` or `email_change_new`. */
  readonly type: string;
  readonly email: string;
  /** For a change of email. */
  readonly newEmail: string;
  /** For a sign-up. */
  readonly password: string;
  /** What is said of a user who is created. */
  readonly data: JsonObject;
  readonly aud: string;
  readonly redirectTo: string;
}

/** Makes a link that nobody is sent, and the user it is for where there is none. No limit is asked. */
export type GenerateLink = (
  wanted: WantedLink,
  actor: AuditActor,
  facts: RequestFacts,
) => Promise<{ readonly user: User; readonly link: MadeLink }>;

/** What that takes. */
export type GenerateLinkDeps = UnconfirmedDeps &
  CheckPasswordDeps &
  DepsWith<'store' | 'random' | 'passwords', LinkSettingName | 'mailerSecureEmailChangeEnabled'>;

/** A request with the email as it is kept, and the user who has it. */
interface Prepared extends WantedLink {
  readonly known: User | undefined;
  readonly actor: AuditActor;
  readonly facts: RequestFacts;
}

/** The user of the link, and its kind. */
interface Target {
  readonly user: User;
  readonly kind: MadeLinkKind;
  readonly newEmail?: string;
}

/** Creates {@link GenerateLink}. */
export function createGenerateLink(deps: GenerateLinkDeps): GenerateLink {
  const { store, passwords, settings } = deps;
  const makeLink = createMakeLink(deps);
  const prepareUnconfirmed = createPrepareUnconfirmed(deps);

  async function signUpTarget(wanted: Prepared): Promise<Target> {
    const { password, known } = wanted;
    if (known?.emailConfirmedAt !== undefined) throw errors.email_exists();
    if (known === undefined && password === '')
      throw errors.validation_failed({ message: 'Signup requires a valid password' });
    if (password !== '') await checkPassword(password, deps);
    const passwordHash = password === '' ? undefined : await passwords.hash(password);
    const user = await prepareUnconfirmed({ ...wanted, passwordHash, invited: false }, known, wanted);
    return { user, kind: 'confirmation' };
  }

  async function magicLinkTarget(wanted: Prepared): Promise<Target> {
    if (wanted.known !== undefined) return { user: wanted.known, kind: 'magiclink' };
    // Somebody new signs up by the link, and has no password.
    const user = await prepareUnconfirmed({ ...wanted, invited: false }, undefined, wanted);
    return { user, kind: 'confirmation' };
  }

  async function emailChangeTarget(
    kind: 'email_change_current' | 'email_change_new',
    wanted: Prepared,
  ): Promise<Target> {
    const { actor, facts } = wanted;
    const user = knownUser(wanted);
    if (kind === 'email_change_current' && !settings.mailerSecureEmailChangeEnabled)
      throw errors.validation_failed({
        message: 'Enable secure email change to generate link for current email',
      });
    const newEmail = readEmail(wanted.newEmail);
    if ((await store.users.findByEmail(newEmail, wanted.aud)) !== undefined) throw errors.email_exists();
    // The link for the other address leads to the same change, of which one side may be confirmed already.
    if (user.newEmail === newEmail) return { user, kind, newEmail };
    const audit = auditEntry(actor, 'user_modified', { facts, traits: subjectOf(user) });
    const at = new Date(facts.nowMs);
    const updated = await store.users.update(
      user.id,
      { newEmail, emailChangeConfirmStatus: 0 },
      { at, audit },
    );
    if (!updated.ok) throw errors.user_not_found();
    return { user: updated.user, kind, newEmail };
  }

  const targets: ReadonlyMap<string, (wanted: Prepared) => Promise<Target>> = new Map<
    string,
    (wanted: Prepared) => Promise<Target>
  >([
    ['signup', signUpTarget],
    ['magiclink', magicLinkTarget],
    ['recovery', async (wanted) => ({ user: knownUser(wanted), kind: 'recovery' })],
    [
      'invite',
      async (wanted) => ({
        user: await prepareUnconfirmed({ ...wanted, invited: true }, wanted.known, wanted),
        kind: 'invite',
      }),
    ],
    ['email_change_current', (wanted) => emailChangeTarget('email_change_current', wanted)],
    ['email_change_new', (wanted) => emailChangeTarget('email_change_new', wanted)],
  ]);

  return async (wanted, actor, facts) => {
    const email = readEmail(wanted.email);
    const targetOf = targets.get(wanted.type);
    if (targetOf === undefined)
      throw errors.validation_failed({
        message: `Invalid email action link type requested: ${wanted.type.slice(0, 64)}`,
      });
    const known = await store.users.findByEmail(email, wanted.aud);
    const { user, kind, newEmail } = await targetOf({ ...wanted, email, known, actor, facts });
    const { redirectTo } = wanted;
    const link = await makeLink(user, { kind, redirectTo, actor, ...(newEmail && { newEmail }) }, facts);
    return { user: (await store.users.findById(user.id)) ?? user, link };
  };
}

function knownUser({ known }: Prepared): User {
  if (known === undefined) throw errors.user_not_found({ message: 'User with this email not found' });
  return known;
}
