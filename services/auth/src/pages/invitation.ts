import { isAppError } from '@tollgate/kit/errors';
import { html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { readCookie, setCookie } from '../http/cookies.ts';
import { switchOrganization } from '../organizations/active.ts';
import { acceptInvitation, openInvitation } from '../organizations/invitations.ts';
import { backTo } from './area.ts';
import { form, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { describeProblem } from './problems.ts';
import { roleLabel } from './texts/texts.ts';
import type { Visit } from './visit.ts';

/** Keeps the token of an invitation while its user signs in or up. */
const invitationCookie = { name: 'invitation', form: /^[a-z2-7]{32}$/ } as const;
const maxAgeSeconds = 3_600;

/** The token of the invitation that this browser has opened. */
export function invitationOf(visit: Visit): string | undefined {
  const { query, request, context } = visit;
  const { invitation_token: token } = query;
  if (token !== undefined && invitationCookie.form.test(token)) return token;
  return readCookie(request, { ...invitationCookie, settings: context.settings });
}

/** Asks whether to join the organization of an invitation: the target of its link. */
export const invitationPage: PageDefinition = {
  name: 'invitation',
  access: 'everyone',
  view: viewInvitation,
  async submit(visit) {
    const { context, owner, metadata, reply } = visit;
    const token = invitationOf(visit);
    if (owner === undefined) return visit.redirect('sign-in');
    if (token === undefined) throw errors.invitation_not_found();
    const { user } = owner;
    const { organization } = await acceptInvitation(context, { user, token, actor: user, metadata });
    await switchOrganization(context, { ...owner, organizationId: organization.id }, metadata);
    setCookie(reply, [invitationCookie.name, ''], { settings: context.settings, maxAgeSeconds: 0 });
    return visit.redirect('organizations', { saved: 'joined' });
  },
};

async function viewInvitation(visit: Visit, outcome: Outcome): Promise<View> {
  const { context, owner, texts, reply, metadata } = visit;
  const { settings } = context;
  const token = invitationOf(visit);
  if (token !== undefined) setCookie(reply, [invitationCookie.name, token], { settings, maxAgeSeconds });
  if (owner === undefined)
    return {
      title: texts.invitation,
      content: html`${problemSummary(outcome.problem)}
<p>${texts.invitationSignIn}</p>
<p><a class="button" href="${visit.path('sign-in')}">${texts.signIn}</a></p>
<p class="after"><a href="${visit.path('sign-up')}">${texts.createAccount}</a></p>`,
    };
  const opened = await openInvitation(
    context,
    { user: owner.user, token: token ?? '' },
    metadata.nowMs,
  ).catch((error: unknown) => {
    if (!isAppError(error)) throw error;
    return describeProblem(error, { texts, settings });
  });
  if ('message' in opened)
    return {
      title: texts.invitation,
      problem: opened,
      content: html`${problemSummary(opened)}
${backTo(visit, 'organizations')}`,
    };
  const { organization, invitation } = opened;
  return {
    title: texts.invitation,
    content: html`${problemSummary(outcome.problem)}
<p>${texts.invitationTo(organization.name, roleLabel(invitation.role, texts))}</p>
${form(visit, { action: visit.path('invitation'), content: html`<button>${texts.join}</button>` })}
${backTo(visit, 'organizations')}`,
  };
}
