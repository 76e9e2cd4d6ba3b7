import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import type { Visit } from '../../http/visit.ts';

/** A custom identity provider. The admin API never returns its secret. */
export type Provider = AuthSchemas['CustomProvider'];

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
