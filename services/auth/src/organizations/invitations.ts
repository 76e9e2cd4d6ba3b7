import { isAppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import { errors } from '../errors.ts';
import { pageUrl } from '../http/page-url.ts';
import { userLanguages } from '../i18n/languages.ts';
import { randomDigestedToken, toStoredForm } from '../keys/secrets.ts';
import { enforceMessageQuota } from '../messages/quotas.ts';
import type { MessagesContext } from '../messages/send.ts';
import { toMailType } from '../messages/smtp.ts';
import { getUser } from '../users/save-user.ts';
import { readEmail, toUserJson, type User } from '../users/user.ts';
import { checkNewMember } from './hooks.ts';
import type { Invitation, InvitationStore } from './invitation-store.ts';
import { addNewMember } from './members.ts';
import type { Organization } from './organization.ts';
import {
  type Change,
  getOrganization,
  type OrganizationsContext,
  organizationAudit,
} from './organizations.ts';
import { isPermitted, maySetRole, readRole, requireMaySetRole } from './roles.ts';
import type { Membership } from './store.ts';

export type InvitationsContext = OrganizationsContext &
  MessagesContext & { readonly store: { readonly invitations: InvitationStore } };

/** The token is in the mail only. */
export function toInvitationJson({
  id,
  email,
  role,
  invitedBy,
  createdAt,
  expiresAt,
}: Invitation): JsonObject {
  return {
    ...{ id, email, role },
    ...(invitedBy !== undefined && { invited_by: invitedBy }),
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
  };
}

/** A request of a member to invite an address. */
interface InvitationRequest extends Change {
  readonly organization: Organization;
  readonly user: User;
  /** Role of the member who invites. */
  readonly own: string;
  readonly email: string | undefined;
  readonly role: string | undefined;
  /** Where the link leads without hosted pages. Checked. */
  readonly redirectTo: string;
}

/**
 * Mails an invitation, which replaces an earlier one of the address.
 *
 * @throws AppError `validation_failed`, `organization_permission_denied`,
 * `organization_member_exists`, `over_member_quota`, `over_request_rate_limit`,
 * `over_email_send_rate_limit`; `unexpected_failure` if the mail server does not accept the mail
 */
export async function invite(context: InvitationsContext, request: InvitationRequest): Promise<Invitation> {
  const { store, settings, random, limiter } = context;
  const { organization, user, own, metadata } = request;
  const email = readEmail(request.email ?? '');
  const role = readRole(settings, request.role ?? 'member');
  requireMaySetRole(settings, own, role);
  const { nowMs } = metadata;
  await limiter.enforce('organization_invitation', { key: user.id, nowMs });
  await limiter.enforce('organization_invitation_address', { key: email, nowMs });
  await enforceMessageQuota(context, 'email', nowMs);
  const token = randomDigestedToken(random);
  const createdAt = new Date(nowMs);
  const invitation = {
    id: random.uuid(),
    organizationId: organization.id,
    ...{ email, role, createdAt },
    invitedBy: user.id,
    expiresAt: new Date(nowMs + settings.organizationsInvitationExpMs),
  };
  await store.transaction(async (transaction) => {
    await requireRoom(transaction, { settings, organization, email, at: createdAt });
    const audit = organizationAudit('organization_member_invited', organization, request, { email, role });
    await transaction.invitations.insert({ ...invitation, tokenHash: toStoredForm(token) }, audit);
  });
  try {
    await send(context, { ...request, email, role, token });
  } catch (cause) {
    await store.invitations.withdraw(toStoredForm(token));
    // The error of a hook.
    if (isAppError(cause)) throw cause;
    throw errors.unexpected_failure({ message: 'Error sending invitation email', cause });
  }
  return invitation;
}

async function requireRoom(
  { organizations }: Pick<InvitationsContext['store'], 'organizations'>,
  {
    settings,
    organization: { id },
    email,
    at,
  }: Pick<InvitationsContext, 'settings'> & {
    readonly organization: Organization;
    readonly email: string;
    readonly at: Date;
  },
): Promise<void> {
  if ((await organizations.lock(id)) === undefined) throw errors.organization_not_found();
  if (await organizations.hasMemberWithEmail(id, email)) throw errors.organization_member_exists();
  const { members, invitations } = await organizations.countMembers(id, at);
  if (members + invitations >= settings.organizationsMaxMembers) throw errors.over_member_quota();
}

async function send(
  context: InvitationsContext,
  invitation: InvitationRequest & { readonly email: string; readonly role: string; readonly token: string },
): Promise<void> {
  const { hooks, mailer, settings, store } = context;
  const { organization, user, email, role, token, redirectTo, metadata } = invitation;
  const recipient = await store.users.findByEmail(email, user.aud);
  const link = invitationUrl(context, { token, redirectTo });
  if (hooks.enabled.has('SEND_EMAIL')) {
    const data = {
      ...{ token, token_hash: '', redirect_to: link, token_new: '', token_hash_new: '' },
      email_action_type: toMailType('ORGANIZATION_INVITE'),
      site_url: metadata.linkOrigin ?? settings.apiExternalUrl,
      ...{ organization_id: organization.id, organization_name: organization.name, role },
    };
    const to = recipient === undefined ? { email } : toUserJson(recipient);
    await hooks.call('SEND_EMAIL', { user: to, email_data: data }, metadata);
    return;
  }
  await mailer.send({
    kind: 'ORGANIZATION_INVITE',
    to: email,
    languages: recipient === undefined ? userLanguages(user, metadata) : userLanguages(recipient, {}),
    variables: {
      SiteURL: settings.siteUrl,
      Email: email,
      SendingTo: email,
      OrganizationName: organization.name,
      InvitedBy: user.email,
      Role: role,
      Token: token,
      RedirectTo: redirectTo,
      ConfirmationURL: link,
    },
  });
}

/** The hosted page, or else a page of the app, which sends the token to the API. */
function invitationUrl(
  { settings }: InvitationsContext,
  { token, redirectTo }: { readonly token: string; readonly redirectTo: string },
): string {
  const url = new URL(settings.pagesEnabled ? pageUrl(settings, 'invitation') : redirectTo);
  url.searchParams.set('invitation_token', token);
  if (settings.pagesEnabled) url.searchParams.set('redirect_to', redirectTo);
  return url.href;
}

/** @throws AppError `invitation_not_found` */
export async function revokeInvitation(
  { store }: InvitationsContext,
  { organization, id, ...change }: Change & { readonly organization: Organization; readonly id: string },
): Promise<void> {
  const audit = organizationAudit('organization_invitation_revoked', organization, change, {
    invitation_id: id,
  });
  if (!(await store.invitations.revoke({ id, organizationId: organization.id }, audit)))
    throw errors.invitation_not_found();
}

/** An invitation, and the organization that it is to. */
interface OpenInvitation {
  readonly invitation: Invitation;
  readonly organization: Organization;
}

/**
 * The invitation of a link, if the address of the user is the invited one, and the member who sent
 * it may still do so.
 *
 * @throws AppError `invitation_not_found`, `invitation_email_mismatch`
 */
export async function openInvitation(
  context: InvitationsContext,
  { user, token }: { readonly user: User; readonly token: string },
  nowMs: number,
): Promise<OpenInvitation> {
  const { store, settings } = context;
  const invitation = await store.invitations.findByToken(toStoredForm(token), new Date(nowMs));
  if (invitation === undefined) throw errors.invitation_not_found();
  const { organizationId, invitedBy, role, email } = invitation;
  if (invitedBy !== undefined) {
    const inviter = await store.organizations.findMembership(organizationId, invitedBy);
    const isAllowed =
      inviter !== undefined &&
      isPermitted(settings, inviter.role, 'members:invite') &&
      maySetRole(settings, inviter.role, role);
    if (!isAllowed) throw errors.invitation_not_found();
  }
  if (user.email !== email || user.emailConfirmedAt === undefined) throw errors.invitation_email_mismatch();
  return { invitation, organization: await getOrganization(context, organizationId) };
}

/**
 * Makes the user a member, and spends the invitation.
 *
 * @throws AppError as `openInvitation`; `organization_member_exists`, `over_organization_quota`,
 * and the error of a hook
 */
export async function acceptInvitation(
  context: InvitationsContext,
  { user, token, ...change }: Change & { readonly user: User; readonly token: string },
): Promise<Membership> {
  const { nowMs } = change.metadata;
  const { invitation, organization } = await openInvitation(context, { user, token }, nowMs);
  const { role } = invitation;
  await checkNewMember(context, { organization, user, role, method: 'invitation' }, change.metadata);
  return addNewMember(
    context,
    { ...change, organizationId: organization.id, user, role },
    async (transaction) => {
      // The inviter or the address of the user may have changed while the hook was called.
      const current = await getUser(transaction, user.id);
      await openInvitation({ ...context, store: transaction }, { user: current, token }, nowMs);
      if (!(await transaction.invitations.take(toStoredForm(token), new Date(nowMs))))
        throw errors.invitation_not_found();
    },
  );
}
