import { errors } from '../../errors.ts';
import type { ActionSet } from '../../http/actions.ts';
import type { Visit } from '../../http/visit.ts';
import { field } from '../../ui/fields.ts';

/** A custom identity provider of the admin API, which never returns its secret. */
export interface Provider {
  readonly identifier: string;
  readonly provider_type: 'oauth2' | 'oidc';
  readonly name: string;
  readonly enabled: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

/** The provider that the path names. @throws ServiceError */
export function readProvider(visit: Visit): Promise<Provider> {
  const path = { identifier: visit.param('id') };
  return visit.services.auth((client) =>
    client.GET('/admin/custom-providers/{identifier}', { params: { path } }),
  );
}

export function providerPath({ identifier }: Pick<Provider, 'identifier'>): string {
  return `/identity-providers/${encodeURIComponent(identifier)}`;
}

/** Actions on identity providers. */
export const providerSet: ActionSet<Provider> = {
  route: '/identity-providers/:id',
  permission: 'providers',
  read: readProvider,
  name: ({ name }) => name,
  path: providerPath,
  actions: [
    {
      path: 'delete',
      button: 'Delete',
      isDangerous: true,
      question: ({ name }) => `${name} is deleted, and users cannot sign in with it. This cannot be undone.`,
      fields: ({ identifier }) =>
        field({ name: 'confirmed', label: `Type ${identifier} to confirm`, isRequired: true }),
      isOffered: () => true,
      run: async ({ visit, subject: { identifier, name }, form }) => {
        if (form.get('confirmed')?.trim() !== identifier) throw errors.not_confirmed();
        const params = { path: { identifier } };
        await visit.services.auth((client) =>
          client.DELETE('/admin/custom-providers/{identifier}', { params }),
        );
        return { notice: `${name} is deleted.`, path: '/identity-providers' };
      },
    },
  ],
};
