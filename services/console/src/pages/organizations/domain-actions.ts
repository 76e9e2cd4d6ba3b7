import { type Html, html } from '@tollgate/kit/html';
import type { Action } from '../../http/actions.ts';
import { field } from '../../ui/fields.ts';
import { readText } from '../../ui/form.ts';
import type { Organization } from './organization.ts';

/** Actions on the email domains of an organization. */
export const domainActions: readonly Action<Organization>[] = [
  {
    path: 'domain',
    button: 'Add a domain',
    question: ({ name }) =>
      `Users with a confirmed email address of the domain can join ${name}, with the role that the organization gives them.`,
    fields: domainFields,
    run: async ({ visit, subject: { id }, form }) => {
      const domain = readText(form, 'domain');
      if (form.get('proof') === 'none') {
        const params = { path: { organization_id: id, domain } };
        await visit.services.auth((client) =>
          client.PUT('/admin/organizations/{organization_id}/domains/{domain}', { params }),
        );
        return `${domain} is a domain of the organization.`;
      }
      const params = { path: { organization_id: id } };
      await visit.services.auth((client) =>
        client.POST('/admin/organizations/{organization_id}/domains', { params, body: { domain } }),
      );
      return `Set the DNS record of ${domain} that is shown below, and verify the domain then.`;
    },
  },
  {
    path: 'domains/:item/verify',
    button: 'Verify the domain',
    question: ({ name }) =>
      `The auth server asks the DNS for the record. With it, the domain is one of ${name}.`,
    run: async ({ visit, subject: { id }, item }) => {
      const params = { path: { organization_id: id, domain: item } };
      await visit.services.auth((client) =>
        client.POST('/admin/organizations/{organization_id}/domains/{domain}/verify', { params }),
      );
      return `${item} is verified.`;
    },
  },
  {
    path: 'domains/:item/remove',
    button: 'Remove the domain',
    isDangerous: true,
    question: ({ name }) =>
      `Users with an email address of the domain cannot join ${name} by it any more. Members stay.`,
    run: async ({ visit, subject: { id }, item }) => {
      const params = { path: { organization_id: id, domain: item } };
      await visit.services.auth((client) =>
        client.DELETE('/admin/organizations/{organization_id}/domains/{domain}', { params }),
      );
      return `${item} is removed.`;
    },
  },
];

function domainFields(): Html {
  return html`${field({ name: 'domain', label: 'Domain', placeholder: 'example.com', isRequired: true })}${field(
    {
      name: 'proof',
      label: 'Proof',
      value: 'dns',
      choices: {
        dns: 'DNS record: the organization proves that it has the domain',
        none: 'None: I know that the organization has the domain',
      },
    },
  )}`;
}
