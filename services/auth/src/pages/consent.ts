import { html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import {
  approve,
  continueConsent,
  deny,
  findAuthorization,
  openAuthorization,
} from '../oauth/authorizations.ts';
import { splitScope } from '../oauth/scopes.ts';
import { form, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { PageTexts } from './texts/texts.ts';
import type { Visit } from './visit.ts';

/** Asks whether an OAuth client may have access: the target of `/oauth/authorize`. */
export const consentPage: PageDefinition = {
  name: 'consent',
  access: 'user',
  show: continueEarlier,
  view: viewConsent,
  async submit(visit) {
    const { context, owner, metadata, destination, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const { authorization } = await findAuthorization(context, destination.authorizationId);
    // Anything but a click on the button is a refusal.
    const decide = fields.action === 'approve' ? approve : deny;
    return leave(visit, await decide(context, { authorization, owner }, metadata));
  },
};

/**
 * Redirects to the client if the user has consented before. Any application of a device can pretend
 * to be a public client of it.
 *
 * @see RFC 8252 §8.6 https://www.rfc-editor.org/rfc/rfc8252#section-8.6
 */
async function continueEarlier(visit: Visit): Promise<FastifyReply | undefined> {
  const { context, owner, metadata, destination } = visit;
  if (owner === undefined) return undefined;
  const { authorization, client } = await openAuthorization(context, owner, destination.authorizationId);
  const isKnown = client.client_type === 'confidential' || authorization.redirect_uri.startsWith('https:');
  if (!isKnown) return undefined;
  const url = await continueConsent(context, { authorization, owner }, metadata);
  return url === undefined ? undefined : leave(visit, url);
}

function leave({ reply }: Visit, url: string): FastifyReply {
  return reply.header('cache-control', 'no-store').redirect(url, 303);
}

async function viewConsent(visit: Visit, { problem }: Outcome): Promise<View> {
  const { context, owner, texts, destination } = visit;
  const { authorization, client } = await findAuthorization(context, destination.authorizationId);
  const { protocol, host } = new URL(authorization.redirect_uri);
  // An app has no host that the user could know.
  const place = host === '' ? protocol : host;
  const action = visit.path('consent');
  const account = owner?.user.email || owner?.user.phone || '';
  return {
    title: texts.consentTitle,
    formTargets: [protocol],
    content: html`${problemSummary(problem)}
<p>${texts.consentText(client.client_name ?? place, account)}</p>
<ul>${splitScope(authorization.scope).map((scope) => html`<li>${describeScope(scope, texts)}</li>`)}</ul>
${authorization.resource !== null && html`<p>${texts.consentResource(authorization.resource)}</p>`}
<p class="hint">${texts.consentReturn(place)}</p>
${form(visit, {
  action,
  content: html`<button name="action" value="approve">${texts.allow}</button>
<button class="secondary" name="action" value="deny">${texts.deny}</button>`,
})}
${form(visit, {
  action: visit.path('sign-out'),
  content: html`<button class="link">${texts.useAnotherAccount}</button>`,
})}`,
  };
}

/** Scopes of clients have no text. */
function describeScope(scope: string, { scopes }: PageTexts): string {
  return Object.hasOwn(scopes, scope) ? scopes[scope as keyof PageTexts['scopes']] : scope;
}
