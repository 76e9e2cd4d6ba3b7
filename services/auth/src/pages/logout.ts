import { html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import { endClientSession, type Logout, readLogout } from '../oauth/logout.ts';
import { signOut } from '../sessions/sessions.ts';
import { form } from './forms.ts';
import { type PageDefinition, sendView, type View } from './page.ts';
import type { Visit } from './visit.ts';

/**
 * Signs the user out for an OAuth client: the target of `/oauth/logout`. An ID token of the user
 * proves that the client may ask for it; otherwise the user decides.
 *
 * @see OpenID Connect RP-Initiated Logout §2
 */
export const logoutPage: PageDefinition = {
  name: 'logout',
  access: 'everyone',
  show: followRequest,
  view: viewLogout,
  async submit(visit) {
    await endOwnSession(visit);
    return showSignedOut(visit);
  },
};

async function followRequest(visit: Visit): Promise<FastifyReply | undefined> {
  const { context, owner, query, metadata } = visit;
  const logout = await readLogout(context, query, metadata);
  if (owner !== undefined && logout.hint?.userId !== owner.user.id) return undefined;
  if (logout.hint !== undefined) await endClientSession(context, logout.hint, metadata);
  await endOwnSession(visit);
  return leave(visit, logout);
}

function viewLogout(visit: Visit): View {
  const { owner, texts } = visit;
  const account = owner?.user.email || owner?.user.phone || texts.guestAccount;
  return {
    title: texts.logoutTitle,
    content: html`<p>${texts.signedInAs} <strong>${account}</strong></p>
${form(visit, { action: visit.path('logout'), content: html`<button>${texts.signOut}</button>` })}
<p class="after"><a href="${visit.path('account')}">${texts.staySignedIn}</a></p>`,
  };
}

async function endOwnSession(visit: Visit): Promise<void> {
  const { context, owner, metadata } = visit;
  if (owner === undefined) return;
  const { user, session } = owner;
  await signOut(context, { user, sessionId: session.id, scope: 'local' }, metadata);
  visit.signOut();
}

function leave(visit: Visit, { redirectUrl }: Logout): FastifyReply {
  if (redirectUrl === undefined) return showSignedOut(visit);
  return visit.reply
    .headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    .redirect(redirectUrl, 303);
}

function showSignedOut(visit: Visit): FastifyReply {
  const { texts } = visit;
  return sendView(visit, {
    title: texts.signedOutTitle,
    content: html`<p>${texts.signedOutText}</p>
<p class="after"><a href="${visit.path('sign-in')}">${texts.signIn}</a></p>`,
  });
}
