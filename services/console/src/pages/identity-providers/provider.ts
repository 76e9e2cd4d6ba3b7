import type { Visit } from '../../http/visit.ts';

/** A custom identity provider of the admin API, which never returns its secret. */
export interface Provider {
  readonly identifier: string;
  readonly provider_type: 'oauth2' | 'oidc';
  readonly name: string;
  readonly enabled: boolean;
  readonly client_id: string;
  readonly scopes: readonly string[];
  readonly acceptable_client_ids: readonly string[];
  readonly pkce_enabled: boolean;
  readonly email_optional: boolean;
  readonly attribute_mapping: Readonly<Record<string, unknown>>;
  readonly authorization_params: Readonly<Record<string, unknown>>;
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
