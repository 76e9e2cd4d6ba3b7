import { html } from '@tollgate/kit/html';
import { type ActionSet, creationSet } from '../../http/actions.ts';
import type { Visit } from '../../http/visit.ts';
import { memberFields, readMembers, readType, typeFields } from './form.ts';
import { type Provider, providerPath, readProvider } from './provider.ts';

/** Actions on identity providers. */
export const providerSet: ActionSet<Provider> = {
  route: '/identity-providers/:id',
  permission: 'providers',
  read: readProvider,
  name: ({ name }) => name,
  path: providerPath,
  actions: [
    {
      path: 'change',
      button: 'Change',
      question: ({ name }) =>
        `The change of ${name} applies to the next sign-in. Empty fields stay as they are.`,
      fields: memberFields,
      run: async ({ visit, subject, form }) => {
        await change(visit, subject, readMembers(form));
        return 'The provider is changed.';
      },
    },
    {
      path: 'check',
      button: 'Check configuration',
      question: ({ name }) =>
        `The auth server checks the members of ${name} and its addresses, and reads the discovery document of an OpenID Connect provider. Nothing is changed.`,
      run: async ({ visit, subject: { identifier, name } }) => {
        const params = { path: { identifier } };
        const { ok, problem = 'no reason is known' } = await visit.services.auth((client) =>
          client.POST('/admin/custom-providers/{identifier}/check', { params }),
        );
        return ok ? `The configuration of ${name} has no problem.` : `The check has failed: ${problem}`;
      },
    },
    {
      path: 'disable',
      button: 'Disable',
      isDangerous: true,
      question: ({ name }) => `Users cannot sign in with ${name} until it is enabled. Their sessions go on.`,
      isOffered: ({ enabled }) => enabled,
      run: async ({ visit, subject }) => {
        await change(visit, subject, { enabled: false });
        return `${subject.name} is disabled.`;
      },
    },
    {
      path: 'enable',
      button: 'Enable',
      question: ({ name }) => `Users can sign in with ${name}.`,
      isOffered: ({ enabled }) => !enabled,
      run: async ({ visit, subject }) => {
        await change(visit, subject, { enabled: true });
        return `${subject.name} is enabled.`;
      },
    },
    {
      path: 'delete',
      button: 'Delete',
      isDangerous: true,
      question: ({ name }) => `${name} is deleted, and users cannot sign in with it. This cannot be undone.`,
      confirmation: ({ identifier }) => identifier,
      run: async ({ visit, subject: { identifier, name } }) => {
        const params = { path: { identifier } };
        await visit.services.auth((client) =>
          client.DELETE('/admin/custom-providers/{identifier}', { params }),
        );
        return { notice: `${name} is deleted.`, path: '/identity-providers' };
      },
    },
  ],
};

/** The action on the list. */
export const newProviderSet = creationSet('/identity-providers', 'providers', {
  button: 'Add an identity provider',
  question: () =>
    'Users can sign in with it at once. Register the callback URL of the auth server with the provider first. A provider says who signs in, administrators included.',
  fields: () => html`${typeFields()}${memberFields()}`,
  run: async ({ visit, form }) => {
    const body = { ...readType(form), ...readMembers(form) };
    const created = await visit.services.auth((client) => client.POST('/admin/custom-providers', { body }));
    return { notice: `${created.name} is added.`, path: providerPath(created) };
  },
});

type ProviderChange = Partial<ReturnType<typeof readMembers>> & { readonly enabled?: boolean };

async function change(visit: Visit, { identifier }: Provider, body: ProviderChange): Promise<void> {
  const params = { path: { identifier } };
  await visit.services.auth((client) => client.PUT('/admin/custom-providers/{identifier}', { params, body }));
}
