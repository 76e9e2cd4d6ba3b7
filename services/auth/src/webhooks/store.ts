import type { JsonObject } from '@tollgate/kit/json';
import { type Queryable, query, type Row } from '../db/connection.ts';
import type { Page, PageRequest } from '../db/paging.ts';

/** An event that is to be delivered, or was given up. */
export interface StoredEvent {
  readonly id: string;
  readonly eventId: string;
  readonly userId: string;
  /** `user.created`, `session.revoked`, … */
  readonly type: string;
  readonly data: JsonObject;
  readonly createdAt: Date;
  /** Identifies the claim, too. */
  readonly attempts: number;
  readonly retryUntil: Date;
  readonly failedAt: Date | undefined;
  readonly lastError: string;
}

const columns = `e.id, e.event_id, e.user_id, e.type, e.data, e.created_at, e.attempts, e.retry_until, e.failed_at,
  e.last_error`;

// The first pending event of each user only, so that events of a user are delivered in order.
// `next_attempt_at` of a claimed event is the end of the claim.
const claimSql = `
  with due as (
    select e.id from tollgate_events e
    where e.failed_at is null and (e.next_attempt_at is null or e.next_attempt_at <= $1)
      and not exists (
        select 1 from tollgate_events earlier
        where earlier.user_id = e.user_id and earlier.failed_at is null and earlier.id < e.id)
    order by e.id limit $4 for update skip locked
  )
  update tollgate_events e
  set attempts = e.attempts + 1, next_attempt_at = $2, retry_until = coalesce(e.retry_until, $3)
  from due where e.id = due.id
  returning ${columns}`;

const finishSql = 'delete from tollgate_events where id = $1 and attempts = $2';

// Later events of the user get the same time: claims would otherwise visit all of them each time
// during a long outage of the endpoint.
const rescheduleSql = `
  with rescheduled as (
    update tollgate_events set next_attempt_at = $3, last_error = $4, failed_at = $5
    where id = $1 and attempts = $2 and failed_at is null
    returning user_id
  )
  update tollgate_events later set next_attempt_at = $3
  from rescheduled
  where later.user_id = rescheduled.user_id and later.id > $1 and later.failed_at is null`;

const listFailedSql = `
  select t.total, p.* from (select count(*)::int as total from tollgate_events where failed_at is not null) t
  left join lateral (
    select ${columns} from tollgate_events e where e.failed_at is not null order by e.id limit $1 offset $2
  ) p on true
  order by p.id`;

const redeliverSql = `
  update tollgate_events e set failed_at = null, next_attempt_at = null, retry_until = null, attempts = 0
  where e.event_id = $1 and e.failed_at is not null
  returning ${columns}`;

/** Events that wait for delivery by webhook. Triggers write them. */
export class EventStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Whether changes over these connections write events. */
  async isRecording(): Promise<boolean> {
    const [row] = await query(this.#sql, `select current_setting('tollgate.events', true) as value`, []);
    return row?.value === 'on';
  }

  /** Claims events of different users until `until`. */
  async claim(
    now: Date,
    options: { readonly until: Date; readonly retryUntil: Date; readonly limit: number },
  ): Promise<readonly StoredEvent[]> {
    const rows = await query(this.#sql, claimSql, [now, options.until, options.retryUntil, options.limit]);
    return rows.map(toEvent);
  }

  /** Removes a delivered event. */
  async finish({ id, attempts }: StoredEvent): Promise<void> {
    await query(this.#sql, finishSql, [id, attempts]);
  }

  /** Without `nextAttemptAt` the event is given up. */
  async reschedule(
    { id, attempts }: StoredEvent,
    outcome: { readonly at: Date; readonly nextAttemptAt: Date | undefined; readonly error: string },
  ): Promise<void> {
    const { at, nextAttemptAt, error } = outcome;
    const failedAt = nextAttemptAt === undefined ? at : null;
    await query(this.#sql, rescheduleSql, [id, attempts, nextAttemptAt ?? null, error, failedAt]);
  }

  /** Events that were given up, oldest first. */
  async listFailed({ limit, offset }: PageRequest): Promise<Page<StoredEvent>> {
    const rows = await query(this.#sql, listFailedSql, [limit, offset]);
    // Parsed boundary: the column selected above.
    const total = (rows[0] as { readonly total: number } | undefined)?.total ?? 0;
    return { total, items: rows.filter(({ id }) => id !== null).map(toEvent) };
  }

  /** Undefined if no event with this id was given up. */
  async redeliver(eventId: string): Promise<StoredEvent | undefined> {
    const [row] = await query(this.#sql, redeliverSql, [eventId]);
    return row && toEvent(row);
  }
}

function toEvent(row: Row): StoredEvent {
  // Parsed boundary: the columns selected above, with the types of the schema.
  const r = row as {
    readonly id: string;
    readonly event_id: string;
    readonly user_id: string;
    readonly type: string;
    readonly data: JsonObject;
    readonly created_at: Date;
    readonly attempts: number;
    readonly retry_until: Date | null;
    readonly failed_at: Date | null;
    readonly last_error: string;
  };
  return {
    id: r.id,
    eventId: r.event_id,
    userId: r.user_id,
    type: r.type,
    data: r.data,
    createdAt: r.created_at,
    attempts: r.attempts,
    retryUntil: r.retry_until ?? r.created_at,
    failedAt: r.failed_at ?? undefined,
    lastError: r.last_error,
  };
}
