import { html } from '@tollgate/kit/html';
import { actionButtons } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { memberDetails, namesOfOthers } from '../../ui/members.ts';
import { card, copyable, details, time } from '../../ui/text.ts';
import { clientSet } from './actions.ts';
import { clientName, clientState, isChangeable, readClient } from './client.ts';

/** Members shown first. All others have the names of RFC 7591. */
const labels = {
  client_type: 'Type',
  token_endpoint_auth_method: 'Authentication',
  grant_types: 'Grant types',
  response_types: 'Response types',
  redirect_uris: 'Redirect URIs',
  scopes: 'Scopes',
  audiences: 'Audiences',
  plan: 'Plan',
  limit: 'Limit',
  role: 'Role',
  org_id: 'Organization',
  registration_type: 'Registration',
};

/** Members with a place of their own. */
const placed = ['client_id', 'client_name', 'disabled', 'built_in', 'created_at', 'updated_at'];

/** One client, with all members. */
export async function viewClient(visit: Visit): Promise<View> {
  const client = await readClient(visit);
  const others = namesOfOthers(client, [...Object.keys(labels), ...placed]);
  return {
    title: clientName(client),
    content: html`${isChangeable(client) && actionButtons(clientSet, client, visit)}
<div class="grid"><section class="card stack"><div><h2>Client</h2>${details({
      State: clientState(client),
      Id: copyable(client.client_id),
      Created: time(client.created_at, visit.nowMs),
      Changed: time(client.updated_at, visit.nowMs),
    })}</div>${
      !isChangeable(client) &&
      html`<p class="dim">A client of Tollgate itself. SVC_OAUTH_SERVER_CONSOLE_URL and SVC_OAUTH_SERVER_CLI_ENABLED of the auth server say what it has.</p>`
    }</section>
${card('Access', memberDetails(client, labels))}
${Object.keys(others).length > 0 && card('Metadata', memberDetails(client, others))}</div>`,
  };
}
