import type { JsonObject } from '@tollgate/kit/json';
import { containing, type Queryable } from '../db/connection.ts';
import { noInstance } from '../db/fragments.ts';
import { indexed, indexedExpressions } from '../db/indexes.ts';
import {
  type CursorPage,
  Lister,
  type Listing,
  type Page,
  type PageRequest,
  type Position,
} from '../db/paging.ts';
import { json, jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { bind, type Fragment, fragment, join, Parameter, raw, statement } from '../db/statement.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type AuditAction, describeAction } from './actions.ts';

export interface AuditEntry {
  readonly payload: JsonObject;
  readonly at: Date;
  /** Empty when unknown. */
  readonly ip: string;
}

/**
 * The role in which an actor acts. `service_token` is a token without a session; `unauthenticated`
 * is a request that names the account of the actor, and has not proven to be of its owner.
 */
type AuditActorKind =
  | 'user'
  | 'administrator'
  | 'api_key'
  | 'service_token'
  | 'command_line'
  | 'unauthenticated';

/** Who performed an action: a user, an administrator, or a program. */
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
      ...describeAction(action),
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

/** Which entries to list. An absent member does not restrict the list. */
export interface AuditFilter {
  /** Case-insensitive substring match. */
  readonly search?: { readonly scope: AuditScope; readonly text: string };
  readonly actorId?: string;
  readonly action?: string;
  readonly kind?: string;
}

interface Audited {
  readonly audit: AuditEntry;
}

const payload = new Parameter(json, ({ audit }: Audited) => audit.payload);
const at = new Parameter(timestamptz, ({ audit }: Audited) => audit.at);
const ip = new Parameter(text, ({ audit }: Audited) => audit.ip);

/**
 * SQL that writes an audit entry, for a `with` clause of the statement that makes the change.
 * `from` names another part of the `with` clause: the entry is written only if that part has a row.
 */
export function auditInsert(from?: string): Fragment<Audited> {
  const condition = raw(from === undefined ? '' : `from ${from} limit 1`);
  return fragment`insert into audit_log_entries (id, instance_id, payload, created_at, ip_address)
    select gen_random_uuid(), ${noInstance}, ${payload}::json, ${at}::timestamptz, ${ip}::text ${condition}`;
}

const insertEntry = statement({})`${auditInsert()}`;

const searchConditions: Readonly<Record<AuditScope, (pattern: Fragment<unknown>) => Fragment<unknown>>> = {
  author: (pattern) =>
    fragment`(payload ->> 'actor_username' ilike ${pattern} or payload ->> 'actor_name' ilike ${pattern})`,
  action: (pattern) => fragment`payload ->> 'action' ilike ${pattern}`,
  type: (pattern) => fragment`payload ->> 'log_type' ilike ${pattern}`,
};

/** Equality by index: only the prefix of a text is in it. */
function equals(expression: string, value: string): Fragment<unknown> {
  return fragment`${raw(expression)} = ${indexed(bind(text, value))}`;
}

function matching({ search, actorId, action, kind }: AuditFilter): Fragment<unknown> {
  const parts = [
    ...(search === undefined ? [] : [searchConditions[search.scope](bind(text, containing(search.text)))]),
    ...(actorId === undefined ? [] : [equals(indexedExpressions.actorId, actorId)]),
    ...(action === undefined ? [] : [equals(indexedExpressions.action, action)]),
    ...(kind === undefined ? [] : [equals(indexedExpressions.actorKind, kind)]),
  ];
  return parts.length === 0 ? raw('true') : join(parts, ' and ');
}

const entryRow = {
  position: text.orNull,
  id: uuid,
  payload: jsonOf<JsonObject>().orNull,
  created_at: timestamptz.orNull,
  ip_address: text,
};

export const auditListing: Listing<AuditFilter, typeof entryRow> = {
  table: 'audit_log_entries',
  alias: 'e',
  columns: raw('e.id, e.payload, e.created_at, e.ip_address'),
  row: entryRow,
  condition: matching,
  count: (filter) => fragment`(select count(*) from audit_log_entries e where ${matching(filter)})`,
  mustCountByIndex: ({ search, actorId, action }) =>
    search === undefined && (actorId !== undefined || action !== undefined),
  alternative: ({ search }) =>
    search === undefined ? undefined : 'use actor_id, action or kind instead of query',
};

/**
 * The table of audit entries. Statements that change something else write their entry themselves.
 */
export class AuditLog {
  readonly #sql: Queryable;
  readonly #lister: Lister<AuditFilter, typeof entryRow>;

  constructor(sql: Queryable) {
    this.#sql = sql;
    this.#lister = new Lister(sql, auditListing);
  }

  /** Records an event that changes nothing else. */
  async append(entry: AuditEntry): Promise<void> {
    await insertEntry.run(this.#sql, { audit: entry });
  }

  /** Newest first. */
  async list(filter: AuditFilter, page: PageRequest): Promise<Page<StoredAuditEntry>> {
    const { total, items } = await this.#lister.list(filter, { ...page, order: 'desc' });
    return { total, items: items.map(toEntry) };
  }

  /** Lists without the total: says whether another page follows. */
  async listUncounted(
    filter: AuditFilter,
    page: PageRequest,
  ): Promise<{ readonly items: readonly StoredAuditEntry[]; readonly hasMore: boolean }> {
    const { items, hasMore } = await this.#lister.listUncounted(filter, { ...page, order: 'desc' });
    return { items: items.map(toEntry), hasMore };
  }

  /** Entries before a position, newest first. `next` is undefined for the last page. */
  async listAfter(
    filter: AuditFilter,
    page: Omit<CursorPage, 'order'>,
  ): Promise<{ readonly items: readonly StoredAuditEntry[]; readonly next: Position | undefined }> {
    const { items, next } = await this.#lister.listAfter(filter, { ...page, order: 'desc' });
    return { items: items.map(toEntry), next };
  }
}

function toEntry(row: RowOf<typeof entryRow>): StoredAuditEntry {
  const { id, payload, created_at: at, ip_address: ip } = row;
  return { id, payload: payload ?? {}, at: at ?? new Date(0), ip };
}
