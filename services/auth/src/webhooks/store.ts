import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import type { Page, PageRequest } from '../db/paging.ts';
import { bigint, boolean, integer, json, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { columnNames, fragment, parameters, statement } from '../db/statement.ts';

/** The endpoint of the settings, which has no row. */
export const settingsWebhookId = '00000000-0000-0000-0000-000000000000';

/** An event that is to be delivered, or was given up. */
export interface StoredEvent {
  readonly id: string;
  readonly eventId: string;
  /** Events of a subject are delivered in order. */
  readonly subjectId: string;
  /** The nil UUID for the endpoint of the settings, the id of an OAuth client for logout tokens. */
  readonly webhookId: string;
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

const eventRow = {
  id: bigint,
  event_id: uuid,
  user_id: uuid,
  webhook_id: uuid,
  type: text,
  data: json.as<JsonObject>(),
  created_at: timestamptz,
  attempts: integer,
  retry_until: timestamptz.orNull,
  failed_at: timestamptz.orNull,
  last_error: text,
};
const columns = columnNames(eventRow, 'e');

const p = {
  ...parameters(bigint, 'id'),
  ...parameters(uuid, 'eventId', 'webhookId'),
  ...parameters(boolean, 'fromSettings', 'fromApi'),
  ...parameters(integer, 'attempts', 'limit', 'offset'),
  ...parameters(timestamptz, 'now', 'until', 'retryUntil'),
  ...parameters(timestamptz.orNull, 'nextAttemptAt', 'failedAt'),
  ...parameters(text, 'error'),
};

const isRecording = statement({
  value: text.orNull,
})`select current_setting('tollgate.events', true) as value`;

const isDue = fragment`e.failed_at is null and (e.next_attempt_at is null or e.next_attempt_at <= ${p.now})`;

// Every webhook, and whether events for it are due: at most twenty, and that of the settings.
const pending = statement({ id: uuid, name: text, is_due: boolean })`
  select w.id, w.name, exists (
    select 1 from tollgate_events e
    where e.webhook_id = w.id and ${isDue}
  ) as is_due
  from (
    select ${p.webhookId}::uuid as id, 'settings' as name where ${p.fromSettings}::boolean
    union all select id, name from tollgate_webhooks where not disabled and ${p.fromApi}::boolean
  ) w`;

// Endpoints that are no webhooks are OAuth clients. The recursion steps through the index from one
// to the next, however many events each has. The order is random, so that many slow clients do not
// keep others out.
const dueClients = statement({ id: uuid })`
  with recursive endpoint (id) as (
    (select e.webhook_id from tollgate_events e where e.failed_at is null order by e.webhook_id limit 1)
    union all
    select (
      select e.webhook_id from tollgate_events e
      where e.failed_at is null and e.webhook_id > endpoint.id order by e.webhook_id limit 1
    ) from endpoint where endpoint.id is not null
  )
  select endpoint.id from endpoint
  where endpoint.id <> ${p.webhookId} and not exists (select 1 from tollgate_webhooks w where w.id = endpoint.id)
    and exists (select 1 from tollgate_events e where e.webhook_id = endpoint.id and ${isDue})
  order by random() limit ${p.limit}`;

// The first pending event of each subject only, so that events of a subject are delivered in order.
// `user_id` is the subject: a user, or another thing that has events.
// `next_attempt_at` of a claimed event is the end of the claim.
const claim = statement(eventRow)`
  with due as (
    select e.id from tollgate_events e
    where e.webhook_id = ${p.webhookId} and ${isDue}
      and not exists (
        select 1 from tollgate_events earlier
        where earlier.webhook_id = e.webhook_id and earlier.user_id = e.user_id and earlier.failed_at is null
          and earlier.id < e.id)
    order by e.id limit ${p.limit} for update skip locked
  )
  update tollgate_events e
  set attempts = e.attempts + 1, next_attempt_at = ${p.until},
    retry_until = coalesce(e.retry_until, ${p.retryUntil})
  from due where e.id = due.id
  returning ${columns}`;

const finish = statement({})`delete from tollgate_events where id = ${p.id} and attempts = ${p.attempts}`;

// Later events of the subject get the same time: claims would otherwise visit all of them each time
// during a long outage of the endpoint.
const reschedule = statement({})`
  with rescheduled as (
    update tollgate_events set next_attempt_at = ${p.nextAttemptAt}, last_error = ${p.error}, failed_at = ${p.failedAt}
    where id = ${p.id} and attempts = ${p.attempts} and failed_at is null
    returning user_id, webhook_id
  )
  update tollgate_events later set next_attempt_at = ${p.nextAttemptAt}
  from rescheduled
  where later.webhook_id = rescheduled.webhook_id and later.user_id = rescheduled.user_id and later.id > ${p.id} and later.failed_at is null`;

const listFailed = statement({ total: integer }, eventRow)`
  select t.total, p.* from (select count(*)::int as total from tollgate_events where failed_at is not null) t
  left join lateral (
    select ${columns} from tollgate_events e where e.failed_at is not null order by e.failed_at desc, e.id desc limit ${p.limit} offset ${p.offset}
  ) p on true
  order by p.failed_at desc, p.id desc`;

const redeliver = statement(eventRow)`
  with e as (
    update tollgate_events set failed_at = null, next_attempt_at = null, retry_until = null, attempts = 0
    where event_id = ${p.eventId} and failed_at is not null
    returning *
  ), audit as (${auditInsert('e')})
  select ${columns} from e`;

/** Events that wait for delivery by webhook. Triggers write them. */
export class EventStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Whether changes over these connections write events. */
  async isRecording(): Promise<boolean> {
    return (await isRecording.first(this.#sql, {}))?.value === 'on';
  }

  /** The webhooks, and which of them have events that are due. */
  async pending(
    now: Date,
    sources: {
      readonly fromSettings: boolean;
      readonly fromApi: boolean;
    },
  ): Promise<readonly { readonly id: string; readonly name: string; readonly isDue: boolean }[]> {
    const values = { now, webhookId: settingsWebhookId, ...sources };
    const rows = await pending.run(this.#sql, values);
    return rows.map(({ id, name, is_due: isDue }) => ({ id, name, isDue }));
  }

  /** Some of the OAuth clients that have logout tokens which are due, by the ids of their rows. */
  async dueClients(now: Date, limit: number): Promise<readonly string[]> {
    const rows = await dueClients.run(this.#sql, { now, limit, webhookId: settingsWebhookId });
    return rows.map(({ id }) => id);
  }

  /** Claims events of different subjects for an endpoint until `until`. */
  async claim(
    now: Date,
    options: {
      readonly webhookId: string;
      readonly until: Date;
      readonly retryUntil: Date;
      readonly limit: number;
    },
  ): Promise<readonly StoredEvent[]> {
    return (await claim.run(this.#sql, { now, ...options })).map(toEvent);
  }

  /** Removes a delivered event. */
  async finish({ id, attempts }: StoredEvent): Promise<void> {
    await finish.run(this.#sql, { id, attempts });
  }

  /** Without `nextAttemptAt` the event is given up. */
  async reschedule(
    { id, attempts }: StoredEvent,
    outcome: { readonly at: Date; readonly nextAttemptAt: Date | undefined; readonly error: string },
  ): Promise<void> {
    const { at, nextAttemptAt, error } = outcome;
    const failedAt = nextAttemptAt === undefined ? at : null;
    await reschedule.run(this.#sql, { id, attempts, nextAttemptAt, error, failedAt });
  }

  /** Events that were given up, oldest first. */
  async listFailed(page: PageRequest): Promise<Page<StoredEvent>> {
    const rows = await listFailed.run(this.#sql, page);
    const items = rows.flatMap((row) => (row.id === null ? [] : toEvent(row)));
    return { total: rows[0]?.total ?? 0, items };
  }

  /** Undefined if no event with this id was given up. */
  async redeliver(eventId: string, audit: AuditEntry): Promise<StoredEvent | undefined> {
    const row = await redeliver.first(this.#sql, { eventId, audit });
    return row && toEvent(row);
  }
}

function toEvent(r: RowOf<typeof eventRow>): StoredEvent {
  return {
    id: r.id,
    eventId: r.event_id,
    subjectId: r.user_id,
    webhookId: r.webhook_id,
    type: r.type,
    data: r.data,
    createdAt: r.created_at,
    attempts: r.attempts,
    retryUntil: r.retry_until ?? r.created_at,
    failedAt: r.failed_at ?? undefined,
    lastError: r.last_error,
  };
}
