import { html } from '@tollgate/kit/html';
import { type ActionSet, creationSet } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import { field } from '../../ui/fields.ts';
import { copyable, details } from '../../ui/text.ts';
import { clientName, clientPath, isChangeable, type OAuthClient, readClient } from './client.ts';
import { memberFields, readMembers, readType, typeFields } from './form.ts';

/** Actions on OAuth clients. */
export const clientSet: ActionSet<OAuthClient> = {
  route: '/oauth-clients/:id',
  permission: 'clients',
  read: readClient,
  name: clientName,
  path: clientPath,
  actions: [
    {
      path: 'change',
      button: 'Change',
      question: (client) => `The change of ${clientName(client)} applies to new sign-ins and tokens.`,
      fields: (client) =>
        html`${memberFields(client)}${field({
          name: 'disabled',
          label: 'State',
          value: String(client.disabled ?? false),
          choices: { false: 'Active', true: 'Disabled: it gets no tokens, and its sessions end' },
        })}`,
      isOffered: isChangeable,
      run: async ({ visit, subject, form }) => {
        const params = { path: { client_id: subject.client_id } };
        const body = { ...readMembers(form), disabled: form.get('disabled') === 'true' };
        await visit.services.auth((client) =>
          client.PUT('/admin/oauth/clients/{client_id}', { params, body }),
        );
        return 'The client is changed.';
      },
    },
    {
      path: 'secret',
      button: 'Regenerate the secret',
      isDangerous: true,
      question: (client) =>
        `${clientName(client)} gets a new secret. The old one is rejected at once, and the sessions of the client end.`,
      isOffered: hasSecret,
      run: async ({ visit, subject }) => {
        const params = { path: { client_id: subject.client_id } };
        const changed = await visit.services.auth((client) =>
          client.POST('/admin/oauth/clients/{client_id}/regenerate_secret', { params }),
        );
        return showSecret(changed);
      },
    },
    {
      path: 'delete',
      button: 'Delete',
      isDangerous: true,
      question: (client) => `${clientName(client)} is deleted, and its sessions end. This cannot be undone.`,
      confirmation: clientName,
      isOffered: isChangeable,
      run: async ({ visit, subject }) => {
        const params = { path: { client_id: subject.client_id } };
        await visit.services.auth((client) => client.DELETE('/admin/oauth/clients/{client_id}', { params }));
        return { notice: `${clientName(subject)} is deleted.`, path: '/oauth-clients' };
      },
    },
  ],
};

/** The action on the list. */
export const newClientSet = creationSet('/oauth-clients', 'clients', {
  button: 'Create an OAuth client',
  question: () =>
    'An application that signs users in, or a service that calls your APIs. The secret of a confidential client is shown once, on the next page.',
  fields: () => html`${typeFields()}${memberFields()}`,
  run: async ({ visit, form }) => {
    const body = { ...readType(form), ...readMembers(form) };
    const created = await visit.services.auth((client) => client.POST('/admin/oauth/clients', { body }));
    if (created.client_secret !== undefined) return showSecret(created);
    return { notice: 'The client is created.', path: clientPath(created) };
  },
});

function hasSecret(client: OAuthClient): boolean {
  const { client_type: type, token_endpoint_auth_method: method } = client;
  return isChangeable(client) && type === 'confidential' && method !== 'private_key_jwt';
}

/** The page with a new secret. It is the response to the form, so that no URL leads to it. */
function showSecret(client: OAuthClient): View {
  const { client_id: id, client_secret: secret } = client;
  return {
    title: `Secret of ${clientName(client)}`,
    content: html`<section class="card stack"><p>Copy the secret now: it is not shown again.</p>
${details({
  'Client id': copyable(id),
  'Client secret': secret === undefined ? undefined : copyable(secret),
})}
<div class="actions"><a class="button primary" href="${clientPath(client)}">I have copied it</a></div></section>`,
  };
}
