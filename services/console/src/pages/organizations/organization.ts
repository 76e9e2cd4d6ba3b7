import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import type { Visit } from '../../http/visit.ts';

export type Organization = AuthSchemas['Organization'];

/** The organization that the path names. @throws ServiceError */
export function readOrganization(visit: Visit): Promise<Organization> {
  const params = { path: { organization_id: visit.param('id') } };
  return visit.services.auth((client) => client.GET('/admin/organizations/{organization_id}', { params }));
}

/** Path of the page of an organization. */
export function organizationPath({ id }: Pick<Organization, 'id'>): string {
  return `/organizations/${id}`;
}
