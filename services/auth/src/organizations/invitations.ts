import { isAppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import { errors } from '../errors.ts';
import { pageUrl } from '../http/page-url.ts';
import { userLanguages } from '../i18n/languages.ts';
import { randomDigestedToken, toStoredForm } from '../keys/secrets.ts';
import type { MessagesContext } from '../messages/context.ts';
import { enforceMessageQuota } from '../messages/quotas.ts';
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
  lockForChange,
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
  const { user, metadata } = request;
  const email = readEmail(request.email ?? '');
  const role = readRole(settings, request.role ?? 'member');
  requireMaySetRole(settings, request.own, role);
  const { nowMs } = metadata;
  await limiter.enforce('organization_invitation', { key: user.id, nowMs });
  await limiter.enforce('organization_invitation_address', { key: email, nowMs });
  await enforceMessageQuota(context, 'email', nowMs);
  const token = randomDigestedToken(random);
  const createdAt = new Date(nowMs);
  const invitation = {
    id: random.uuid(),
    organizationId: request.organization.id,
    ...{ email, role, createdAt },
    invitedBy: user.id,
    expiresAt: new Date(nowMs + settings.organizationsInvitationExpMs),
  };
  await store.transaction(async (transaction) => {
    const { organizations } = transaction;
    const { organization, own } = await lockForChange(
      { organizations, settings },
      invitation.organizationId,
      {
        ...{ own: request.own, actor: request.actor, permission: 'members:invite' },
      },
    );
    if (own !== undefined) requireMaySetRole(settings, own, role);
    await requireRoom({ organizations }, { settings, invitation });
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

/** @throws AppError `organization_member_exists`, `over_member_quota` */
async function requireRoom(
  { organizations }: Pick<InvitationsContext['store'], 'organizations'>,
  {
    settings,
    invitation: { organizationId: id, email, createdAt },
  }: Pick<InvitationsContext, 'settings'> & {
    readonly invitation: Pick<Invitation, 'organizationId' | 'email' | 'createdAt'>;
  },
): Promise<void> {
  if (await organizations.hasMemberWithEmail(id, email)) throw errors.organization_member_exists();
  const { members, invitations } = await organizations.countMembers(id, createdAt);
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

/** @throws AppError `invitation_not_found`, and as `lockForChange` */
export async function revokeInvitation(
  { store, settings }: InvitationsContext,
  {
    organization: { id: organizationId },
    role: own,
    id,
    ...change
  }: Change & Membership & { readonly id: string },
): Promise<void> {
  await store.transaction(async ({ organizations, invitations }) => {
    const { organization } = await lockForChange({ organizations, settings }, organizationId, {
      ...{ own, actor: change.actor, permission: 'members:invite' },
    });
    const traits = { invitation_id: id };
    const audit = organizationAudit('organization_invitation_revoked', organization, change, traits);
    if (!(await invitations.revoke({ id, organizationId }, audit))) throw errors.invitation_not_found();
  });
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
