import type { JsonObject } from '@tollgate/kit/json';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { checkNewUser, reportNewUser } from '../hooks/hooks.ts';
import { type LinkKind, linkDefinitions } from '../messages/link-definitions.ts';
import { linkUrl, newLinkToken, sendLink } from '../messages/links.ts';
import { checkPassword } from '../passwords/passwords.ts';
import { type AdminRequest, checkRoles, userAuditEntry } from '../sessions/admin-request.ts';
import { checkMetadata } from '../users/metadata.ts';
import { newContactUser } from '../users/new-user.ts';
import { getUser, saveUser } from '../users/save-user.ts';
import { readEmail, type User } from '../users/user.ts';
import type { AdminContext } from './users.ts';

/** Invites a user by mail, also while sign-up is disabled. */
export async function inviteUser(
  context: AdminContext,
  invitation: {
    readonly email: string;
    /** User metadata. */
    readonly data: JsonObject;
    readonly aud: string;
    readonly redirectTo: string;
  },
  request: AdminRequest,
): Promise<User> {
  const { store } = context;
  const { data, aud, redirectTo } = invitation;
  const { actor, metadata } = request;
  const email = readEmail(invitation.email);
  const known = await store.users.findByEmail(email, aud);
  checkRoles(request, [known?.role], context.settings);
  const user = await prepareUnconfirmed(context, { email, aud, data, known, invited: true }, request);
  // No PKCE: invitations are opened in the browser of the invited user.
  await sendLink(context, user, { kind: 'invite', redirectTo, flow: 'implicit', actor }, metadata);
  return getUser(store, user.id);
}

/**
 * Sends a user a link to set a new password.
 *
 * @throws AppError `user_not_found`, `user_sso_managed`, `validation_failed` without an email
 *   address, and those of limits on emails
 */
export async function sendRecovery(
  context: AdminContext,
  userId: string,
  request: AdminRequest,
): Promise<void> {
  const user = await getUser(context.store, userId);
  checkRoles(request, [user.role], context.settings);
  if (user.isSsoUser) throw errors.user_sso_managed();
  if (user.email === '') throw errors.validation_failed({ message: 'The user has no email address' });
  const { actor, metadata } = request;
  await sendLink(context, user, { kind: 'recovery', redirectTo: '', flow: 'implicit', actor }, metadata);
}

interface LinkRequest {
  /** `signup`, `magiclink`, `recovery`, `invite`, `email_change_current` or `email_change_new`. */
  readonly type: string;
  readonly email: string;
  /** Only a change of email has it. */
  readonly newEmail: string;
  /** Only a sign-up has it. */
  readonly password: string;
  /** User metadata of a new user. */
  readonly data: JsonObject;
  readonly aud: string;
  readonly redirectTo: string;
}

/** Makes a link without sending it, and creates its user where necessary. Not rate limited. */
export async function generateLink(
  context: AdminContext,
  link: LinkRequest,
  request: AdminRequest,
): Promise<{ readonly user: User; readonly link: ActionLink }> {
  const { store } = context;
  const email = readEmail(link.email);
  const known = await store.users.findByEmail(email, link.aud);
  // A link signs in.
  checkRoles(request, [known?.role], context.settings);
  const target = await prepareTarget(context, { ...link, email, known }, request);
  const actionLink = await makeLink(context, target, { redirectTo: link.redirectTo, request });
  return { user: (await store.users.findById(target.user.id)) ?? target.user, link: actionLink };
}

/** Links that administrators request and send themselves. */
type ActionLinkKind =
  | Exclude<LinkKind, 'email_change' | 'reauthentication'>
  | 'email_change_current'
  | 'email_change_new';

interface ActionLink {
  readonly actionLink: string;
  readonly emailOtp: string;
  readonly hashedToken: string;
  /** `signup`, `recovery`, …, `email_change_current`, `email_change_new`. */
  readonly verificationType: string;
  readonly redirectTo: string;
}

/** Makes a link, which replaces the user's last one of its kind. Sends nothing; no limits apply. */
async function makeLink(
  context: AdminContext,
  { user, kind, newEmail = user.newEmail }: LinkTarget,
  { redirectTo, request }: { readonly redirectTo: string; readonly request: AdminRequest },
): Promise<ActionLink> {
  const { definition, type, verificationType } = getDefinition(kind);
  const contact = kind === 'email_change_new' ? newEmail : user.email;
  const at = new Date(request.metadata.nowMs);
  const { code, token } = newLinkToken(context, { userId: user.id, type, contact, flow: 'implicit', at });
  const audit = auditEntry(request.actor, definition.action, {
    metadata: request.metadata,
    traits: { user_id: user.id, user_email: user.email },
  });
  await context.store.oneTimeTokens.replace([token], audit);
  return {
    actionLink: linkUrl(context.settings, definition, {
      hash: token.hash,
      redirectTo,
      base: request.metadata.linkOrigin,
    }),
    emailOtp: code,
    hashedToken: token.hash,
    verificationType,
    redirectTo,
  };
}

function getDefinition(kind: ActionLinkKind) {
  if (kind === 'email_change_new')
    return {
      definition: linkDefinitions.email_change,
      type: 'email_change_token_new',
      verificationType: kind,
    } as const;
  if (kind === 'email_change_current')
    return {
      definition: linkDefinitions.email_change,
      type: 'email_change_token_current',
      verificationType: kind,
    } as const;
  const definition = linkDefinitions[kind];
  return { definition, type: definition.token, verificationType: definition.type };
}

/** A request with the normalized email and its user. */
interface PreparedRequest extends LinkRequest {
  readonly known: User | undefined;
}

interface LinkTarget {
  readonly user: User;
  readonly kind: ActionLinkKind;
  readonly newEmail?: string;
}

async function prepareTarget(
  context: AdminContext,
  link: PreparedRequest,
  request: AdminRequest,
): Promise<LinkTarget> {
  const { type, known } = link;
  switch (type) {
    case 'signup':
      return { user: await prepareSignUp(context, link, request), kind: 'confirmation' };
    case 'magiclink':
      if (known !== undefined) return { user: known, kind: 'magiclink' };
      // The link confirms the sign-up of a new user without password.
      return {
        user: await prepareUnconfirmed(context, { ...link, invited: false }, request),
        kind: 'confirmation',
      };
    case 'recovery':
      return { user: getKnown(known), kind: 'recovery' };
    case 'invite':
      return { user: await prepareUnconfirmed(context, { ...link, invited: true }, request), kind: 'invite' };
    case 'email_change_current':
    case 'email_change_new':
      return prepareEmailChange(context, { ...link, type }, request);
    default:
      throw errors.validation_failed({
        message: `Invalid email action link type requested: ${type.slice(0, 64)}`,
      });
  }
}

async function prepareSignUp(
  context: AdminContext,
  link: PreparedRequest,
  request: AdminRequest,
): Promise<User> {
  const { password, known } = link;
  if (known?.emailConfirmedAt !== undefined) throw errors.email_exists();
  if (known === undefined && password === '')
    throw errors.validation_failed({ message: 'Signup requires a valid password' });
  if (password !== '') await checkPassword(context, password, [link.email]);
  const passwordHash = password === '' ? undefined : await context.passwords.hash(password);
  return prepareUnconfirmed(context, { ...link, passwordHash, invited: false }, request);
}

async function prepareEmailChange(
  { store, settings }: AdminContext,
  link: PreparedRequest & { readonly type: 'email_change_current' | 'email_change_new' },
  request: AdminRequest,
): Promise<LinkTarget> {
  const user = getKnown(link.known);
  if (link.type === 'email_change_current' && !settings.mailerSecureEmailChangeEnabled)
    throw errors.validation_failed({
      message: 'Enable secure email change to generate link for current email',
    });
  const newEmail = readEmail(link.newEmail);
  if ((await store.users.findByEmail(newEmail, link.aud)) !== undefined) throw errors.email_exists();
  // The link for the other address belongs to the same change, which one side may have confirmed
  // already.
  if (user.newEmail === newEmail) return { user, kind: link.type, newEmail };
  const options = {
    at: new Date(request.metadata.nowMs),
    audit: userAuditEntry(request, 'user_modified', user),
  };
  const changed = await saveUser(store, user.id, { newEmail, emailChangeConfirmStatus: 0 }, options);
  return { user: changed, kind: link.type, newEmail };
}

function getKnown(known: User | undefined): User {
  if (known === undefined) throw errors.user_not_found({ message: 'User with this email not found' });
  return known;
}

interface UnconfirmedUser {
  readonly email: string;
  readonly aud: string;
  /** User metadata. */
  readonly data: JsonObject;
  readonly passwordHash?: string | undefined;
  readonly invited: boolean;
  /** The user who has the email. */
  readonly known: User | undefined;
}

/**
 * Creates the user of an unconfirmed email, or updates the one who has it.
 *
 * @throws AppError `email_exists` for a confirmed user, `validation_failed` for too much metadata.
 */
async function prepareUnconfirmed(
  context: AdminContext,
  unconfirmed: UnconfirmedUser,
  request: AdminRequest,
): Promise<User> {
  const { data, passwordHash, invited, known } = unconfirmed;
  checkMetadata({ userMetadata: data }, known);
  if (known === undefined) return createUnconfirmed(context, unconfirmed, request);
  if (known.emailConfirmedAt !== undefined) throw errors.email_exists();
  const at = new Date(request.metadata.nowMs);
  const changes = {
    userMetadata: data,
    ...(invited && { invitedAt: at }),
    // An earlier sign-up with this address has not proved that it owns it.
    ...(passwordHash !== undefined && { passwordHash }),
  };
  const audit = userAuditEntry(request, 'user_modified', known);
  return saveUser(context.store, known.id, changes, { at, audit });
}

async function createUnconfirmed(
  context: AdminContext,
  { email, aud, data, passwordHash, invited }: UnconfirmedUser,
  request: AdminRequest,
): Promise<User> {
  const { store, random, settings } = context;
  const at = new Date(request.metadata.nowMs);
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
  await checkNewUser(context, user, request.metadata);
  const audit = userAuditEntry(request, 'user_signedup', user, { provider: 'email' });
  // Unlike a sign-up, this does not add the identity to the user metadata.
  const stored = { ...user, userMetadata: data, ...(invited && { invitedAt: at }) };
  if (!(await store.users.insert(stored, audit))) throw errors.email_exists();
  const created = await getUser(store, user.id);
  reportNewUser(context, created, request.metadata);
  return created;
}
