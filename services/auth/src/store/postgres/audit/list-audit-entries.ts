import type { JsonObject } from '../../../domain/json.ts';
import type { AuditScope, AuditStore, StoredAuditEntry } from '../../../ports/audit-store.ts';
import { containing } from '../like-pattern.ts';
import { type Queryable, query, type Row } from '../query.ts';

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
