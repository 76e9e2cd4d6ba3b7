import type { Context } from '../context.ts';
import { type AuditActor, auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createMakeLink, type MadeLink, type MadeLinkKind } from '../messages/links.ts';
import { createSendLink } from '../messages/send-link.ts';
import { checkPassword } from '../passwords/policy.ts';
import { readEmail } from '../sign-up/input.ts';
import { newContactUser, type User } from '../users/user.ts';
import { checkMetadata, type JsonObject } from '../users/user-json.ts';
import { subjectOf } from './create-user.ts';

/** Somebody who has not confirmed their email yet. */
interface Unconfirmed {
  readonly email: string;
  readonly aud: string;
  /** What is said of the user. */
  readonly data: JsonObject;
  readonly passwordHash?: string | undefined;
  /** Whether they are invited now; else they sign up. */
  readonly invited: boolean;
}

/**
 * The user of an email that nobody has confirmed: a new one, or the one that is there, with what is said of them now.
 *
 * @throws AppError `email_exists` when the user has confirmed it, `validation_failed` for too much metadata.
 */
type PrepareUnconfirmed = (
  wanted: Unconfirmed,
  known: User | undefined,
  by: { readonly actor: AuditActor; readonly metadata: RequestMetadata },
) => Promise<User>;

/** Creates {@link PrepareUnconfirmed}. */
function createPrepareUnconfirmed({ store, random, settings }: Context): PrepareUnconfirmed {
  async function create(
    { email, aud, data, passwordHash, invited }: Unconfirmed,
    { actor, metadata }: Parameters<PrepareUnconfirmed>[2],
  ): Promise<User> {
    const at = new Date(metadata.nowMs);
    const user = newContactUser({
      id: random.uuid(),
      aud,
      role: settings.jwtDefaultGroupName,
      contact: { kind: 'email', email },
      passwordHash,
      confirmed: false,
      userMetadata: data,
      at,
    });
    const audit = auditEntry(actor, 'user_signedup', {
      metadata,
      traits: { ...subjectOf(user), provider: 'email' },
    });
    // Metadata as it was sent: unlike at a sign-up, nothing of the identity is added.
    const stored = { ...user, userMetadata: data, ...(invited && { invitedAt: at }) };
    if (!(await store.users.insert(stored, audit))) throw errors.email_exists();
    const created = await store.users.findById(user.id);
    if (created === undefined) throw errors.user_not_found();
    return created;
  }

  async function renew(
    user: User,
    { data, passwordHash, invited }: Unconfirmed,
    { actor, metadata }: Parameters<PrepareUnconfirmed>[2],
  ): Promise<User> {
    const at = new Date(metadata.nowMs);
    const audit = auditEntry(actor, 'user_modified', { metadata, traits: subjectOf(user) });
    const updated = await store.users.update(
      user.id,
      {
        userMetadata: data,
        ...(invited && { invitedAt: at }),
        // Whoever signed up with this address before has not shown that it is theirs.
        ...(passwordHash !== undefined && { passwordHash }),
      },
      { at, audit },
    );
    if (!updated.ok) throw errors.user_not_found();
    return updated.user;
  }

  return async (wanted, known, by) => {
    checkMetadata({ userMetadata: wanted.data }, known);
    if (known === undefined) return create(wanted, by);
    if (known.emailConfirmedAt !== undefined) throw errors.email_exists();
    return renew(known, wanted, by);
  };
}

/** A link that an administrator wants to hand over. */
interface WantedLink {
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
  metadata: RequestMetadata,
) => Promise<{ readonly user: User; readonly link: MadeLink }>;

/** A request with the email as it is kept, and the user who has it. */
interface Prepared extends WantedLink {
  readonly known: User | undefined;
  readonly actor: AuditActor;
  readonly metadata: RequestMetadata;
}

/** The user of the link, and its kind. */
interface Target {
  readonly user: User;
  readonly kind: MadeLinkKind;
  readonly newEmail?: string;
}

/** Creates {@link GenerateLink}. */
export function createGenerateLink(deps: Context): GenerateLink {
  const { store, passwords, settings } = deps;
  const makeLink = createMakeLink(deps);
  const prepareUnconfirmed = createPrepareUnconfirmed(deps);

  async function signUpTarget(wanted: Prepared): Promise<Target> {
    const { password, known } = wanted;
    if (known?.emailConfirmedAt !== undefined) throw errors.email_exists();
    if (known === undefined && password === '')
      throw errors.validation_failed({ message: 'Signup requires a valid password' });
    if (password !== '') await checkPassword(deps, password);
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
    const { actor, metadata } = wanted;
    const user = knownUser(wanted);
    if (kind === 'email_change_current' && !settings.mailerSecureEmailChangeEnabled)
      throw errors.validation_failed({
        message: 'Enable secure email change to generate link for current email',
      });
    const newEmail = readEmail(wanted.newEmail);
    if ((await store.users.findByEmail(newEmail, wanted.aud)) !== undefined) throw errors.email_exists();
    // The link for the other address leads to the same change, of which one side may be confirmed already.
    if (user.newEmail === newEmail) return { user, kind, newEmail };
    const audit = auditEntry(actor, 'user_modified', { metadata, traits: subjectOf(user) });
    const at = new Date(metadata.nowMs);
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

  return async (wanted, actor, metadata) => {
    const email = readEmail(wanted.email);
    const targetOf = targets.get(wanted.type);
    if (targetOf === undefined)
      throw errors.validation_failed({
        message: `Invalid email action link type requested: ${wanted.type.slice(0, 64)}`,
      });
    const known = await store.users.findByEmail(email, wanted.aud);
    const { user, kind, newEmail } = await targetOf({ ...wanted, email, known, actor, metadata });
    const { redirectTo } = wanted;
    const link = await makeLink(user, { kind, redirectTo, actor, ...(newEmail && { newEmail }) }, metadata);
    return { user: (await store.users.findById(user.id)) ?? user, link };
  };
}

function knownUser({ known }: Prepared): User {
  if (known === undefined) throw errors.user_not_found({ message: 'User with this email not found' });
  return known;
}

/** Who is invited, and where to. */
interface Invitation {
  readonly email: string;
  /** What is said of the user. */
  readonly data: JsonObject;
  readonly aud: string;
  readonly redirectTo: string;
}

/** Invites somebody by mail, also where nobody may sign up by themselves. */
export type InviteUser = (
  invitation: Invitation,
  actor: AuditActor,
  metadata: RequestMetadata,
) => Promise<User>;

/** Creates {@link InviteUser}. */
export function createInviteUser(deps: Context): InviteUser {
  const { store } = deps;
  const sendLink = createSendLink(deps);
  const prepareUnconfirmed = createPrepareUnconfirmed(deps);
  return async ({ email: givenEmail, data, aud, redirectTo }, actor, metadata) => {
    const email = readEmail(givenEmail);
    const known = await store.users.findByEmail(email, aud);
    const user = await prepareUnconfirmed({ email, aud, data, invited: true }, known, { actor, metadata });
    // An invitation is often opened in another browser than the one it was asked for in: there is no PKCE.
    await sendLink(user, { kind: 'invite', redirectTo, flow: 'implicit', actor }, metadata);
    const invited = await store.users.findById(user.id);
    if (invited === undefined) throw errors.user_not_found();
    return invited;
  };
}
