import type { Page, PageRequest } from '../http/pagination.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { JsonObject } from '../users/user-json.ts';
import { containing, noInstance, type Parameter, type Queryable, query, type Row } from './query.ts';

/** What was done, with the kind of thing it was done to. */
const auditActions = {
  login: 'account',
  logout: 'account',
  invite_accepted: 'account',
  user_signedup: 'team',
  user_invited: 'team',
  user_deleted: 'team',
  user_modified: 'user',
  user_recovery_requested: 'user',
  user_reauthenticate_requested: 'user',
  user_confirmation_requested: 'user',
  user_repeated_signup: 'user',
  user_updated_password: 'user',
  token_revoked: 'token',
  token_refreshed: 'token',
  generate_recovery_codes: 'user',
  factor_in_progress: 'factor',
  factor_unenrolled: 'factor',
  challenge_created: 'factor',
  verification_attempted: 'factor',
  factor_deleted: 'factor',
  factor_updated: 'factor',
  mfa_code_login: 'factor',
} as const;

/** One of the keys of {@link auditActions}. */
export type AuditAction = keyof typeof auditActions;

/** An entry of the audit log. */
export interface AuditEntry {
  readonly payload: JsonObject;
  readonly at: Date;
  /** Empty when unknown. */
  readonly ip: string;
}

/** Who did it, as the log names them. */
export interface AuditActor {
  readonly id: string;
  readonly email: string;
  readonly phone: string;
  readonly isSsoUser: boolean;
  readonly userMetadata: JsonObject;
}

/** Makes an entry: who did what, and what there is to say about it. The request is told. */
export function auditEntry(
  actor: AuditActor,
  action: AuditAction,
  options: {
    readonly metadata: Pick<RequestMetadata, 'nowMs' | 'clientAddress' | 'onAudit'>;
    readonly traits?: JsonObject;
  },
): AuditEntry {
  const { metadata, traits } = options;
  const name = actor.userMetadata.full_name;
  const entry: AuditEntry = {
    payload: {
      actor_id: actor.id,
      actor_via_sso: actor.isSsoUser,
      actor_username: actor.email === '' ? actor.phone : actor.email,
      ...(typeof name === 'string' && name !== '' && { actor_name: name }),
      action,
      log_type: auditActions[action],
      ...(traits !== undefined && { traits }),
    },
    at: new Date(metadata.nowMs),
    ip: metadata.clientAddress,
  };
  metadata.onAudit?.(entry);
  return entry;
}

/** An entry as it is kept. */
export interface StoredAuditEntry extends AuditEntry {
  readonly id: string;
}

/** What entries are looked for by: who it was, what was done, to what kind of thing. */
export type AuditScope = 'author' | 'action' | 'type';

/** Which entries are listed, newest first. */
export interface AuditQuery extends PageRequest {
  /** Those that have this text there, whatever its case; absent for all. */
  readonly search: { readonly scope: AuditScope; readonly text: string } | undefined;
}

/** The audit log. Whoever changes something writes the entry in the statement of the change. */
export interface AuditStore {
  /** For events that change nothing else. */
  append(entry: AuditEntry): Promise<void>;
  list(query: AuditQuery): Promise<Page<StoredAuditEntry>>;
}

/**
 * SQL that writes an audit entry, for the `with` of the statement that it belongs to; takes {@link auditParameters} as the
 * parameters from `$first` on. `from`, a name of that `with`, keeps it from being written when there nothing happened.
 */
export function auditInsert(first: number, from?: string): string {
  return `insert into audit_log_entries (id, instance_id, payload, created_at, ip_address)
    select gen_random_uuid(), ${noInstance}, $${first}::json, $${first + 1}::timestamptz, $${first + 2}::text
    ${from === undefined ? '' : `from ${from} limit 1`}`;
}

/** The parameters of {@link auditInsert}. */
export function auditParameters({ payload, at, ip }: AuditEntry): Parameter[] {
  return [payload, at, ip];
}

const text = auditInsert(1);

/** {@link AuditStore.append} */
export function appendAuditEntry(sql: Queryable): AuditStore['append'] {
  return async (entry) => {
    await query(sql, text, auditParameters(entry));
  };
}

const conditions: Readonly<Record<AuditScope | 'all', string>> = {
  all: '$1::text is null',
  author: `(payload ->> 'actor_username' ilike $1 or payload ->> 'actor_name' ilike $1)`,
  action: `payload ->> 'action' ilike $1`,
  type: `payload ->> 'log_type' ilike $1`,
};

/** The count is there also when the page is empty. */
function textOf(condition: string): string {
  const matching = `from audit_log_entries where ${condition}`;
  return `select t.total, p.* from (select count(*)::int as total ${matching}) t left join lateral (
      select id, payload, created_at, ip_address ${matching} order by created_at desc, id limit $2 offset $3
    ) p on true
    order by p.created_at desc, p.id`;
}

const texts: Readonly<Record<AuditScope | 'all', string>> = {
  all: textOf(conditions.all),
  author: textOf(conditions.author),
  action: textOf(conditions.action),
  type: textOf(conditions.type),
};

interface EntryRow {
  readonly total: number;
  readonly id: string | null;
  readonly payload: JsonObject | null;
  readonly created_at: Date | null;
  readonly ip_address: string | null;
}

/** {@link AuditStore.list} */
export function listAuditEntries(sql: Queryable): AuditStore['list'] {
  return async ({ search, limit, offset }) => {
    const pattern = search === undefined ? null : containing(search.text);
    const rows = await query(sql, texts[search?.scope ?? 'all'], [pattern, limit, offset]);
    return { total: rows[0] === undefined ? 0 : entryRow(rows[0]).total, items: rows.flatMap(entryOf) };
  };
}

function entryRow(row: Row): EntryRow {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  return row as unknown as EntryRow;
}

/** One entry, or none where the join found none. */
function entryOf(row: Row): StoredAuditEntry[] {
  const { id, payload, created_at: at, ip_address: ip } = entryRow(row);
  return id === null ? [] : [{ id, payload: payload ?? {}, at: at ?? new Date(0), ip: ip ?? '' }];
}
