import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import type { Html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { badge } from '../../ui/text.ts';

export type OAuthClient = AuthSchemas['OAuthClient'];

/** The client that the path names. @throws ServiceError */
export function readClient(visit: Visit): Promise<OAuthClient> {
  const path = { client_id: visit.param('id') };
  return visit.services.auth((client) =>
    client.GET('/admin/oauth/clients/{client_id}', { params: { path } }),
  );
}

export function clientName({ client_name: name, client_id: id }: OAuthClient): string {
  return name?.trim() || id;
}

export function clientPath({ client_id: id }: Pick<OAuthClient, 'client_id'>): string {
  return `/oauth-clients/${id}`;
}

/** Settings of the auth server define the clients of Tollgate's own programs. */
export function isChangeable({ built_in: isBuiltIn = false }: OAuthClient): boolean {
  return !isBuiltIn;
}

export function clientState(client: OAuthClient): Html {
  if (client.disabled) return badge('disabled', 'warn');
  return badge(isChangeable(client) ? 'active' : 'built in');
}
