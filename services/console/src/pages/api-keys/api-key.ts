import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { badge } from '../../ui/text.ts';
import { organizationPath } from '../organizations/organization.ts';
import { userLink } from '../users/user.ts';

export type ApiKey = AuthSchemas['ApiKey'];

/** The key that the path names, without its secret. @throws ServiceError */
export function readKey(visit: Visit): Promise<ApiKey> {
  const params = { path: { key_id: visit.param('id') } };
  return visit.services.auth((client) => client.GET('/admin/api-keys/{key_id}', { params }));
}

/** Path of the page of a key. */
export function keyPath({ id }: Pick<ApiKey, 'id'>): string {
  return `/api-keys/${id}`;
}

/** The auth server lets only administrators with an API key change those with admin scopes. */
export function isChangeable({ admin_scopes: rights }: Pick<ApiKey, 'admin_scopes'>): boolean {
  return rights.length === 0;
}

/** How the key starts and ends. */
export function keyHint({ prefix, last4 }: Pick<ApiKey, 'prefix' | 'last4'>): Html {
  return html`<code>${prefix}_…${last4}</code>`;
}

export function stateBadge({ disabled, expires_at: expiry }: ApiKey, nowMs: number): Html {
  if (disabled) return badge('disabled', 'bad');
  return expiry !== null && Date.parse(expiry) <= nowMs ? badge('expired', 'warn') : badge('active');
}

/** The owner, with a link for those who may follow it. */
export function ownerLink({ owner }: ApiKey, visit: Visit): Html {
  const { user_id: userId, org_id: orgId } = owner ?? {};
  if (userId !== undefined) return userLink(visit, userId, `User ${userId}`);
  if (orgId === undefined) return html`Machine`;
  return visit.can('organizations')
    ? html`<a href="${organizationPath({ id: orgId })}">Organization ${orgId}</a>`
    : html`Organization ${orgId}`;
}
