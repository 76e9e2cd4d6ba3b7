import type { Context } from '../context.ts';
import {
  type AuditActor,
  type AuditQuery,
  type AuditScope,
  auditEntry,
  type StoredAuditEntry,
} from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { Page, PageRequest } from '../http/pagination.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { User } from '../users/user.ts';
import { subjectOf } from './create-user.ts';

/** Which users an administrator wants to see. */
interface UserListing extends PageRequest {
  readonly aud: string;
  /** Part of email, phone or full name; empty for all. */
  readonly filter: string;
  /** `created_at`, `created_at asc` or `created_at desc`; the last when empty. */
  readonly sort: string;
}

/** Lists users, newest first unless asked otherwise. */
export type ListUsers = (listing: UserListing) => Promise<Page<User>>;

/** Creates {@link ListUsers}. */
export function createListUsers({ store }: Context): ListUsers {
  return ({ sort, ...listing }) => store.users.list({ ...listing, order: readOrder(sort) });
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

/** Deletes a user; `soft` leaves a row that says nothing of them, for the references of others. */
export type DeleteUser = (
  of: { readonly id: string; readonly soft: boolean },
  actor: AuditActor,
  metadata: RequestMetadata,
) => Promise<void>;

/** Creates {@link DeleteUser}. */
export function createDeleteUser({ store }: Pick<Context, 'store'>): DeleteUser {
  return async ({ id, soft }, actor, metadata) => {
    const user = await store.users.findById(id);
    if (user === undefined) throw errors.user_not_found();
    const audit = auditEntry(actor, 'user_deleted', { metadata, traits: subjectOf(user) });
    const isDeleted = soft
      ? await store.users.softDelete(id, { at: new Date(metadata.nowMs), audit })
      : await store.users.delete(id, audit);
    if (!isDeleted) throw errors.user_not_found();
  };
}

/** Lists the audit log, newest first. `query` is empty or `author:`, `action:` or `type:` with a text to look for. */
export type ListAuditEntries = (
  listing: PageRequest & { readonly query: string },
) => Promise<Page<StoredAuditEntry>>;

const scopes: readonly AuditScope[] = ['author', 'action', 'type'];

/** Creates {@link ListAuditEntries}. */
export function createListAuditEntries({ store }: Context): ListAuditEntries {
  return ({ query, ...page }) => store.audit.list({ ...page, search: readSearch(query) });
}

function readSearch(query: string): AuditQuery['search'] {
  if (query === '') return undefined;
  const colon = query.indexOf(':');
  const scope = scopes.find((known) => known === query.slice(0, colon));
  if (colon < 0 || scope === undefined)
    throw errors.validation_failed({ message: `Invalid query scope: ${query.slice(0, 64)}` });
  return { scope, text: query.slice(colon + 1) };
}
