import type { Page, PageRequest } from '../http/api.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { JsonObject } from '../users/user.ts';
import { containing, noInstance, type Parameter, type Queryable, query, queryOnce } from './connection.ts';
import { type Order, shortestScan } from './paging.ts';

/** Values of `log_type` by action. */
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
  identity_unlinked: 'user',
  passkey_created: 'user',
  passkey_updated: 'user',
  passkey_deleted: 'user',
  token_revoked: 'token',
  token_refreshed: 'token',
  generate_recovery_codes: 'user',
  factor_in_progress: 'factor',
  factor_unenrolled: 'factor',
  challenge_created: 'factor',
  verification_attempted: 'factor',
  factor_deleted: 'factor',
  factor_updated: 'factor',
  recovery_codes_generated: 'factor',
  recovery_codes_regenerated: 'factor',
  recovery_codes_verified: 'factor',
  recovery_codes_deleted: 'factor',
  mfa_code_login: 'factor',
  // Not in GoTrue.
  login_failed: 'account',
  identity_linked: 'user',
  users_imported: 'team',
  custom_provider_created: 'provider',
  custom_provider_updated: 'provider',
  custom_provider_deleted: 'provider',
} as const;

export type AuditAction = keyof typeof auditActions;

export interface AuditEntry {
  readonly payload: JsonObject;
  readonly at: Date;
  /** Empty when unknown. */
  readonly ip: string;
}

/**
 * In which role an actor acts. `service` is a token without a session; `unauthenticated` is a
 * request that names the account of the actor, and has not proven to be of its owner.
 */
type AuditActorKind = 'user' | 'administrator' | 'service' | 'command_line' | 'unauthenticated';

/** The user or administrator who performed an action. */
export interface AuditActor {
  /** Default `user`. */
  readonly kind?: AuditActorKind;
  readonly id: string;
  readonly email: string;
  readonly phone: string;
  readonly isSsoUser?: boolean;
  readonly userMetadata: JsonObject;
}

/** Creates an entry, and passes it to `metadata.onAudit` for the access log. */
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
      actor_via_sso: actor.isSsoUser ?? false,
      actor_username: actor.phone === '' ? actor.email : actor.phone,
      ...(typeof name === 'string' && name !== '' && { actor_name: name }),
      actor_kind: actor.kind ?? 'user',
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

export interface StoredAuditEntry extends AuditEntry {
  readonly id: string;
}

/** The field that a search looks at. */
export type AuditScope = 'author' | 'action' | 'type';

/** Entries are listed newest first. */
export interface AuditQuery extends PageRequest {
  /** Case-insensitive substring match. Undefined lists all entries. */
  readonly search: { readonly scope: AuditScope; readonly text: string } | undefined;
}

/**
 * SQL that writes an audit entry, for a `with` clause of the statement that makes the change. Its
 * parameters, {@link auditParameters}, start at `$first`. `from` names another part of the `with`
 * clause: the entry is written only if that part has a row.
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

const insertEntry = auditInsert(1);

const conditions: Readonly<Record<AuditScope | 'all', string>> = {
  all: '$1::text is null',
  author: `(payload ->> 'actor_username' ilike $1 or payload ->> 'actor_name' ilike $1)`,
  action: `payload ->> 'action' ilike $1`,
  type: `payload ->> 'log_type' ilike $1`,
};

/** Reads whole rows only of the entries on the page. */
function pageQuery(condition: string, order: Order): string {
  return `select e.id, e.payload, e.created_at, e.ip_address from (
      select id from audit_log_entries where ${condition} order by created_at ${order}, id ${order} limit $2 offset $3
    ) p join audit_log_entries e using (id)
    order by e.created_at desc, e.id desc`;
}

interface EntryRow {
  readonly id: string;
  readonly payload: JsonObject | null;
  readonly created_at: Date | null;
  readonly ip_address: string | null;
}

/**
 * The table of audit entries. Statements that change something else write their entry themselves.
 */
export class AuditLog {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** For events that change nothing else. */
  async append(entry: AuditEntry): Promise<void> {
    await query(this.#sql, insertEntry, auditParameters(entry));
  }

  async list({ search, ...requested }: AuditQuery): Promise<Page<StoredAuditEntry>> {
    const pattern = search === undefined ? null : containing(search.text);
    const condition = conditions[search?.scope ?? 'all'];
    const count = `select count(*)::int as total from audit_log_entries where ${condition}`;
    const [counted] = await queryOnce(this.#sql, count, [pattern]);
    const total = Number(counted?.total ?? 0);
    const { order, limit, offset } = shortestScan({ ...requested, order: 'desc' }, total);
    const rows = await queryOnce(this.#sql, pageQuery(condition, order), [pattern, limit, offset]);
    // Parsed boundary: these are the columns selected above, with the types of the schema.
    return { total, items: (rows as readonly unknown[] as readonly EntryRow[]).map(toEntry) };
  }
}

function toEntry({ id, payload, created_at: at, ip_address: ip }: EntryRow): StoredAuditEntry {
  return { id, payload: payload ?? {}, at: at ?? new Date(0), ip: ip ?? '' };
}
