import { html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import { issueReturn } from '../browser-sessions/issue.ts';
import { openReturnAddress } from '../browser-sessions/return-address.ts';
import type { PageDefinition, View } from './page.ts';
import type { Visit } from './visit.ts';

/** Returns a signed-in browser to the application from which a gateway has sent it. */
export const returnPage: PageDefinition = {
  name: 'return',
  access: 'user',
  show: followReturn,
  view: viewReturn,
};

async function followReturn(visit: Visit): Promise<FastifyReply | undefined> {
  const { context, owner, destination, metadata } = visit;
  const { settings } = context;
  const { assurance } = openReturnAddress(destination.returnTo, { settings, nowMs: metadata.nowMs }) ?? {};
  // A user who has a second factor has verified it on the way to this page.
  if (assurance !== undefined && owner?.session.aal === 'aal1')
    return visit.redirect('factor', { type: settings['mfaEnabled:totp:enroll'] ? 'totp' : 'phone' });
  const url = owner && (await issueReturn(context, { ...owner, returnTo: destination.returnTo }, metadata));
  if (url === undefined) return undefined;
  return visit.reply
    .headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    .redirect(url, 303);
}

/** Shown for an address that this server has not written. */
function viewReturn({ texts }: Visit): View {
  return { title: texts.returnTitle, content: html`<p>${texts.returnText}</p>` };
}
