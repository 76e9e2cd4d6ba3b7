import { html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import { endClientSession, type Logout, type LogoutTarget, readLogout } from '../oauth/logout.ts';
import { signOut } from '../sessions/sessions.ts';
import { describeTarget } from './app-target.ts';
import { form } from './forms.ts';
import { type PageDefinition, sendView, type View } from './page.ts';
import type { Visit } from './visit.ts';

/**
 * Signs the user out for an OAuth client: the target of `/oauth/logout`. A recent ID token of the
 * user proves that the client may ask for it; otherwise the user decides.
 *
 * @see OpenID Connect RP-Initiated Logout §2
 */
export const logoutPage: PageDefinition = {
  name: 'logout',
  access: 'everyone',
  show: followRequest,
  view: viewLogout,
  async submit(visit) {
    const { target } = await readRequest(visit);
    await endOwnSession(visit);
    return target === undefined ? showSignedOut(visit) : leave(visit, target);
  },
};

async function followRequest(visit: Visit): Promise<FastifyReply | undefined> {
  const { context, owner, metadata } = visit;
  const { hint, target } = await readRequest(visit);
  if (owner !== undefined && hint?.userId !== owner.user.id) return undefined;
  if (hint === undefined) return showSignedOut(visit, target);
  await endClientSession(context, hint, metadata);
  await endOwnSession(visit);
  return target === undefined ? showSignedOut(visit) : leave(visit, target);
}

function readRequest({ context, query, metadata }: Visit): Promise<Logout> {
  return readLogout(context, query, metadata);
}

async function viewLogout(visit: Visit): Promise<View> {
  const { owner, texts } = visit;
  const account = owner?.user.email || owner?.user.phone || texts.guestAccount;
  const { target } = await readRequest(visit);
  const action = visit.path('logout', target?.parameters);
  return {
    title: texts.logoutTitle,
    ...(target !== undefined && { formTargets: [new URL(target.url).protocol] }),
    content: html`<p>${texts.signedInAs} <strong>${account}</strong></p>
${form(visit, { action, content: html`<button>${texts.signOut}</button>` })}
${target !== undefined && html`<p class="hint">${texts.consentReturn(describeTarget(target.url))}</p>`}
<p class="after"><a href="${visit.path('account')}">${texts.staySignedIn}</a></p>`,
  };
}

async function endOwnSession(visit: Visit): Promise<void> {
  const { context, owner, metadata } = visit;
  if (owner === undefined) return;
  const { user, session } = owner;
  await signOut(context, { user, sessionId: session.id, scope: 'with_clients' }, metadata);
  visit.signOut();
}

function leave(visit: Visit, { url }: LogoutTarget): FastifyReply {
  return visit.reply
    .headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    .redirect(url, 303);
}

/** The user follows a link to the target: anyone could have sent the browser here. */
function showSignedOut(visit: Visit, target?: LogoutTarget): FastifyReply {
  const { texts } = visit;
  return sendView(visit, {
    title: texts.signedOutTitle,
    content: html`<p>${texts.signedOutText}</p>
${target !== undefined && html`<p><a href="${target.url}" rel="noreferrer">${texts.continueWith(describeTarget(target.url))}</a></p>`}
<p class="after"><a href="${visit.path('sign-in')}">${texts.signIn}</a></p>`,
  });
}
