import { type Html, html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import { errors } from '../errors.ts';
import type { Grant } from '../oauth/authorization-store.ts';
import { revokeGrant } from '../oauth/grants.ts';
import { splitScope } from '../oauth/scopes.ts';
import { areaForm, areaPage, time } from './area.ts';
import { describeDetails, describeScope } from './consent.ts';
import { form } from './forms.ts';
import type { Owner, Visit } from './visit.ts';

/** OAuth clients that the user has given access. */
export const applicationsPage = areaPage('applications', async (visit, { user }) => {
  const { context, texts } = visit;
  const grants = await context.store.authorizations.listGrants(user.id);
  if (grants.length === 0) return html`<p>${texts.noApplications}</p>`;
  return html`<p>${texts.applicationsText}</p>
<ul class="items">${grants.map((grant) => html`<li>${grantItem(visit, grant)}</li>`)}</ul>`;
});

/** Ends the access of an application, with its sessions. */
export const revokeApplicationForm = areaForm(
  applicationsPage,
  'application-revoke',
  async (visit: Visit, { user }: Owner) => {
    const { client_id: clientId = '' } = visit.form;
    if (!isUuid(clientId)) throw errors.oauth_consent_not_found();
    await revokeGrant(visit.context, { user, clientId: clientId.toLowerCase() }, visit.metadata);
    return 'application';
  },
);

function grantItem(visit: Visit, grant: Grant): Html {
  const { texts } = visit;
  const { client_id: id, granted_at: grantedAt, last_used_at: usedAt, resources } = grant;
  const access = [
    ...splitScope(grant.scopes).map((scope) => describeScope(scope, visit)),
    ...grant.details_types.map((type) => describeDetails(type, visit)),
  ];
  const name = grant.client_name || id;
  const host = URL.parse(grant.document_url ?? '')?.host;
  const content = html`<input type="hidden" name="client_id" value="${id}">
<button class="link" aria-label="${texts.revokeAccess}: ${name}">${texts.revokeAccess}</button>`;
  return html`<div><strong>${name}</strong>${host !== undefined && html`<br><small>${host}</small>`}
<ul class="hint">${access.map((text) => html`<li>${text}</li>`)}</ul>
<small>${resources.map((resource) => html`${texts.accessTo(resource)}<br>`)}
${texts.accessSince} ${time(grantedAt)}${usedAt !== null && html`, ${texts.lastUsed} ${time(usedAt)}`}</small></div>
${form(visit, { action: visit.path('application-revoke'), content })}`;
}
