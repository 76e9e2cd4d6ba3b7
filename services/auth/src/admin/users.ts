import type { Context } from '../context.ts';
import { type AuditQuery, type AuditScope, auditEntry, type StoredAuditEntry } from '../db/audit-log.ts';
import type { Store } from '../db/store.ts';
import { errors } from '../errors.ts';
import type { Page, PageRequest } from '../http/api.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { listSessions } from '../sessions/sessions.ts';
import type { Session } from '../sessions/store.ts';
import { getUser } from '../users/update.ts';
import type { User } from '../users/user.ts';
import { type AdminRequest, userAuditEntry } from './input.ts';

export function listUsers(
  store: Store,
  {
    sort,
    ...query
  }: PageRequest & {
    readonly aud: string;
    /** Part of email, phone or full name; empty for all users. */
    readonly filter: string;
    /** `created_at`, `created_at asc` or `created_at desc`; descending when empty. */
    readonly sort: string;
  },
): Promise<Page<User>> {
  return store.users.list({ ...query, order: readOrder(sort) });
}

function readOrder(sort: string): 'asc' | 'desc' {
  const [field = '', direction = 'desc', ...rest] = sort.trim().toLowerCase().split(/\s+/);
  if (field === '') return 'desc';
  if (field !== 'created_at' || rest.length > 0)
    throw errors.validation_failed({
      message: `Bad Sort Parameters: bad field for sort ${JSON.stringify(sort.slice(0, 64))}, only created_at is known`,
    });
  if (direction !== 'asc' && direction !== 'desc')
    throw errors.validation_failed({
      message: `Bad Sort Parameters: bad direction for sort ${JSON.stringify(direction.slice(0, 64))}, only asc and desc allowed`,
    });
  return direction;
}

/** @throws AppError `user_not_found`. */
export async function deleteUser(
  store: Store,
  { id, soft }: { readonly id: string; readonly soft: boolean },
  request: AdminRequest,
): Promise<void> {
  const audit = userAuditEntry(request, 'user_deleted', await getUser(store, id));
  const isDeleted = soft
    ? await store.users.softDelete(id, { at: new Date(request.metadata.nowMs), audit })
    : await store.users.delete(id, audit);
  if (!isDeleted) throw errors.user_not_found();
}

/** Active sessions of a user, newest first. @throws AppError `user_not_found`. */
export async function listUserSessions(
  context: Context,
  userId: string,
  metadata: RequestMetadata,
): Promise<readonly Session[]> {
  await getUser(context.store, userId);
  return listSessions(context, userId, metadata);
}

/** @throws AppError `user_not_found`, `session_not_found` (404). */
export async function endUserSession(
  { sessions }: Store,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
  request: AdminRequest,
): Promise<void> {
  const found = await sessions.findWithUser(userId, sessionId);
  if (found === undefined) throw errors.user_not_found();
  if (found.session === undefined)
    throw errors.session_not_found({ httpStatus: 404, message: 'Session not found' });
  await sessions.end('local', { userId, sessionId }, logoutEntry(userId, request));
}

/** @throws AppError `user_not_found`. */
export async function endUserSessions(store: Store, userId: string, request: AdminRequest): Promise<void> {
  await getUser(store, userId);
  await store.sessions.end('global', { userId, sessionId: undefined }, logoutEntry(userId, request));
}

function logoutEntry(userId: string, { actor, metadata }: AdminRequest) {
  return auditEntry(actor, 'logout', { metadata, traits: { user_id: userId } });
}

const auditScopes: readonly AuditScope[] = ['author', 'action', 'type'];

/**
 * Newest first. `query` is empty, or a text to search for after `author:`, `action:` or `type:`.
 */
export function listAuditEntries(
  store: Store,
  { query, ...page }: PageRequest & { readonly query: string },
): Promise<Page<StoredAuditEntry>> {
  return store.audit.list({ ...page, search: readSearch(query) });
}

function readSearch(query: string): AuditQuery['search'] {
  if (query === '') return undefined;
  const colon = query.indexOf(':');
  const scope = auditScopes.find((known) => known === query.slice(0, colon));
  if (colon < 0 || scope === undefined)
    throw errors.validation_failed({ message: `Invalid query scope: ${query.slice(0, 64)}` });
  return { scope, text: query.slice(colon + 1) };
}
