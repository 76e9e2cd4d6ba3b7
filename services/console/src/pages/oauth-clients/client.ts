import type { Visit } from '../../http/visit.ts';
import type { Tone } from '../../ui/text.ts';

/** An OAuth client of the admin API: the members that lists and actions use. */
export interface OAuthClient {
  readonly client_id: string;
  readonly client_name?: string;
  readonly client_type: 'public' | 'confidential';
  readonly token_endpoint_auth_method: string;
  readonly redirect_uris: readonly string[];
  readonly grant_types: readonly string[];
  readonly scopes?: readonly string[];
  readonly plan?: string;
  readonly disabled?: boolean;
  readonly built_in?: boolean;
  readonly registration_type: 'dynamic' | 'manual';
  readonly created_at: string;
  readonly updated_at: string;
}

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

export function clientState(client: OAuthClient): { readonly state: string; readonly tone: Tone } {
  if (client.disabled) return { state: 'disabled', tone: 'warn' };
  return { state: isChangeable(client) ? 'active' : 'built in', tone: 'neutral' };
}
