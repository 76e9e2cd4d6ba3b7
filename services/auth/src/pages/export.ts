import type { JsonObject } from '@tollgate/kit/json';
import { toKeyJson } from '../api-keys/api-key.ts';
import { auditEntry } from '../audit/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Grant } from '../oauth/authorization-store.ts';
import { splitScope } from '../oauth/scopes.ts';
import { toMembershipJson } from '../organizations/organization.ts';
import { toPasskeyJson } from '../passkeys/routes.ts';
import { listSessions, toSessionJson } from '../sessions/sessions.ts';
import { toUserJson } from '../users/user.ts';
import type { PagesContext } from './context.ts';
import type { Owner } from './visit.ts';

/** Newer entries of the audit log. A user causes fewer; a program that acts for them may not. */
const maxAuditEntries = 5_000;

/**
 * Everything that is stored of a user, as the API shows it: without passwords, keys and other
 * secrets. The parts are empty where the settings disable them.
 */
export async function exportData(
  context: PagesContext,
  { user, session }: Owner,
  metadata: RequestMetadata,
): Promise<Readonly<Record<string, unknown>>> {
  const { store } = context;
  const { jwtExpMs } = context.settings;
  const [sessions, passkeys, grants, memberships, keys] = await Promise.all([
    listSessions(context, user.id, metadata),
    store.passkeys.list(user.id),
    store.authorizations.listGrants(user.id),
    store.organizations.listMemberships(user.id),
    store.apiKeys.listOwned(user.id),
  ]);
  const page = { limit: maxAuditEntries, after: undefined };
  const { items, next } = await store.audit.listAfter({ actorId: user.id }, page);
  await store.audit.append(auditEntry(user, 'user_data_exported', { metadata }));
  return {
    exported_at: new Date(metadata.nowMs).toISOString(),
    user: toUserJson(user),
    passkeys: passkeys.map(toPasskeyJson),
    sessions: sessions.map((each) => toSessionJson(each, { jwtExpMs, currentId: session.id })),
    applications: grants.map(toGrantJson),
    organizations: memberships.map(toMembershipJson),
    api_keys: keys.map(toKeyJson),
    audit_log: {
      is_complete: next === undefined,
      entries: items.map(({ payload, at, ip }) => ({
        ...payload,
        created_at: at.toISOString(),
        ip_address: ip,
      })),
    },
  };
}

function toGrantJson(grant: Grant): JsonObject {
  return {
    client_id: grant.client_id,
    name: grant.client_name,
    scopes: splitScope(grant.scopes),
    resources: [...grant.resources],
    granted_at: grant.granted_at.toISOString(),
    last_used_at: grant.last_used_at?.toISOString() ?? null,
  };
}
