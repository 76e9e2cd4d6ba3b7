import { html } from '@tollgate/kit/html';
import { actionButtons } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { memberDetails, namesOfOthers } from '../../ui/members.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, card, copyable, details, time } from '../../ui/text.ts';
import { newProviderSet, providerSet } from './actions.ts';
import { type Provider, providerPath, readProvider } from './provider.ts';

/** All custom providers. The auth server bounds their number. */
export async function viewProviders(visit: Visit): Promise<View> {
  const { providers } = await visit.services.auth((client) => client.GET('/admin/custom-providers'));
  return {
    title: 'Identity providers',
    content: html`${actionButtons(newProviderSet, undefined, visit)}${table({
      caption: 'Custom identity providers',
      rows: providers,
      url: visit.url,
      empty: emptyState('There are no custom providers. Add one here.'),
      note: html`Providers of the settings of the auth server, such as Google, are not listed.`,
      rowId: ({ id }) => `provider-${id}`,
      columns: [
        {
          title: 'Provider',
          cell: (provider) => html`<a href="${providerPath(provider)}">${provider.name}</a>`,
        },
        { title: 'Identifier', cell: ({ identifier }) => identifier },
        { title: 'State', cell: providerState },
        { title: 'Type', cell: ({ provider_type: type }) => types[type] },
        { title: 'Issuer', cell: ({ issuer }) => issuer },
        { title: 'Created', cell: (provider) => time(provider.created_at, visit.nowMs) },
      ],
    })}`,
  };
}

const types = { oidc: 'OpenID Connect', oauth2: 'OAuth 2.0' };

/** Members shown first. The others have the names of the admin API. */
const labels = {
  issuer: 'Issuer',
  discovery_url: 'Discovery URL',
  authorization_url: 'Authorization endpoint',
  token_url: 'Token endpoint',
  userinfo_url: 'UserInfo endpoint',
  jwks_uri: 'Key set',
  client_id: 'Client id',
  scopes: 'Scopes',
};

/** Members with a place of their own, and what is never shown. */
const placed = [
  ...['id', 'identifier', 'name', 'provider_type', 'enabled', 'created_at', 'updated_at'],
  'client_secret',
];

/** One provider, with all members. */
export async function viewProvider(visit: Visit): Promise<View> {
  const provider = await readProvider(visit);
  const others = namesOfOthers(provider, [...Object.keys(labels), ...placed]);
  return {
    title: provider.name,
    content: html`${actionButtons(providerSet, provider, visit)}
<div class="grid">${card(
      'Provider',
      details({
        State: providerState(provider),
        Identifier: copyable(provider.identifier),
        Type: types[provider.provider_type],
        Created: time(provider.created_at, visit.nowMs),
        Changed: time(provider.updated_at, visit.nowMs),
      }),
    )}
${card('Connection', memberDetails(provider, labels))}
${card('Options', memberDetails(provider, others))}</div>`,
  };
}

function providerState({ enabled }: Pick<Provider, 'enabled'>) {
  return enabled ? badge('enabled') : badge('disabled', 'warn');
}
