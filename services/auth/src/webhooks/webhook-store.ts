import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import { parseSecrets } from '../config/hook-definitions.ts';
import type { Queryable } from '../db/connection.ts';
import { boolean, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { columnNames, parameters, raw, statement } from '../db/statement.ts';
import type { ColumnCipher } from '../keys/secrets.ts';

const webhookRow = {
  id: uuid,
  name: text,
  url: text,
  /** Not encrypted in a {@link StoredWebhook}, as the previous one. */
  secret: text,
  previous_secret: text,
  previous_secret_until: timestamptz.orNull,
  event_types: text.list,
  disabled: boolean,
  created_at: timestamptz,
  updated_at: timestamptz,
  last_delivered_at: timestamptz.orNull,
  last_failed_at: timestamptz.orNull,
  last_error: text,
};

/** An endpoint that administrators have added. */
export type StoredWebhook = RowOf<typeof webhookRow>;

/** The columns that administrators change. */
type WebhookValues = Omit<StoredWebhook, 'last_delivered_at' | 'last_failed_at' | 'last_error'>;

/** Secrets that sign now, the newest first. */
export function signingSecrets(
  { secret, previous_secret, previous_secret_until }: StoredWebhook,
  nowMs: number,
): readonly Buffer[] {
  const isKept = previous_secret !== '' && (previous_secret_until?.getTime() ?? 0) > nowMs;
  const parsed = parseSecrets([secret, ...(isKept ? [previous_secret] : [])].join('|'));
  return parsed.ok ? parsed.value : [];
}

/** Each event goes to all endpoints, so that their number multiplies the writes of changes. */
export const maxWebhooks = 20;
/** Successful deliveries write the row at most this often. */
const deliveredEveryMs = 60_000;

const columns = columnNames(webhookRow);
const p = {
  ...parameters(uuid, 'id'),
  ...parameters(text, 'name', 'url', 'secret', 'previous_secret', 'error'),
  ...parameters(text.list, 'event_types'),
  ...parameters(boolean, 'disabled'),
  ...parameters(timestamptz, 'at', 'since', 'created_at', 'updated_at', 'version'),
  ...parameters(timestamptz.orNull, 'previous_secret_until'),
};

const list = statement(webhookRow)`select ${columns} from tollgate_webhooks order by created_at, id`;
const find = statement(webhookRow)`select ${columns} from tollgate_webhooks where id = ${p.id}`;

const insert = statement({ taken: boolean, is_full: boolean, is_created: boolean })`
  with others as (
    select count(*)::int as total, coalesce(bool_or(name = ${p.name}), false) as taken from tollgate_webhooks
  ), created as (
    insert into tollgate_webhooks (id, name, url, secret, event_types, disabled, created_at, updated_at)
    select ${p.id}::uuid, ${p.name}::text, ${p.url}::text, ${p.secret}::text, ${p.event_types}::text[],
      ${p.disabled}::boolean, ${p.created_at}::timestamptz, ${p.updated_at}::timestamptz
    from others where not taken and total < ${raw(maxWebhooks)}
    on conflict do nothing returning id
  ), audit as (${auditInsert('created')})
  select taken, total >= ${raw(maxWebhooks)} as is_full, exists (select from created) as is_created from others`;

const update = statement({ id: uuid })`
  with updated as (
    update tollgate_webhooks set name = ${p.name}, url = ${p.url}, secret = ${p.secret},
      previous_secret = ${p.previous_secret}, previous_secret_until = ${p.previous_secret_until},
      event_types = ${p.event_types}, disabled = ${p.disabled}, updated_at = ${p.updated_at}
    where id = ${p.id} and updated_at = ${p.version}
      and not exists (select from tollgate_webhooks other where other.name = ${p.name} and other.id <> ${p.id})
    returning id
  ), audit as (${auditInsert('updated')})
  select id from updated`;

const deleteWebhook = statement({ id: uuid })`
  with deleted as (delete from tollgate_webhooks where id = ${p.id} returning id),
    events as (delete from tollgate_events where webhook_id in (select id from deleted)),
    audit as (${auditInsert('deleted')})
  select id from deleted`;

const recordDelivery = statement({})`update tollgate_webhooks set last_delivered_at = ${p.at}
  where id = ${p.id} and (last_delivered_at is null or last_delivered_at < ${p.since} or last_failed_at > last_delivered_at)`;

const recordFailure = statement({})`
  update tollgate_webhooks set last_failed_at = ${p.at}, last_error = ${p.error} where id = ${p.id}`;

/** The table of endpoints. Secrets are encrypted. */
export class WebhookStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;

  constructor(sql: Queryable, cipher: ColumnCipher) {
    this.#sql = sql;
    this.#cipher = cipher;
  }

  /** Oldest first. At most {@link maxWebhooks}. */
  async list(): Promise<readonly StoredWebhook[]> {
    return (await list.run(this.#sql, {})).map((row) => this.#read(row));
  }

  async find(id: string): Promise<StoredWebhook | undefined> {
    const row = await find.first(this.#sql, { id });
    return row && this.#read(row);
  }

  async insert(webhook: WebhookValues, audit: AuditEntry): Promise<'created' | 'taken' | 'full'> {
    const row = await insert.first(this.#sql, { ...this.#write(webhook), audit });
    if (row?.is_created === true) return 'created';
    return row?.is_full === true && row.taken !== true ? 'full' : 'taken';
  }

  /**
   * Returns false if the row has changed since `version`, its `updated_at`, or another one has the
   * name.
   */
  async update(
    webhook: WebhookValues,
    { version, audit }: { version: Date; audit: AuditEntry },
  ): Promise<boolean> {
    return update.matches(this.#sql, { ...this.#write(webhook), version, audit });
  }

  /** Deletes its events, too. */
  async delete(id: string, audit: AuditEntry): Promise<boolean> {
    return deleteWebhook.matches(this.#sql, { id, audit });
  }

  async recordDelivery(id: string, at: Date): Promise<void> {
    await recordDelivery.run(this.#sql, { id, at, since: new Date(at.getTime() - deliveredEveryMs) });
  }

  async recordFailure(id: string, failure: { readonly at: Date; readonly error: string }): Promise<void> {
    await recordFailure.run(this.#sql, { id, ...failure });
  }

  #read(row: StoredWebhook): StoredWebhook {
    const [secret, previous] = [row.secret, row.previous_secret].map((one) =>
      this.#cipher.decrypt(row.id, one),
    );
    return { ...row, secret: secret ?? '', previous_secret: previous ?? '' };
  }

  #write(webhook: WebhookValues): WebhookValues {
    const { id, secret, previous_secret: previous } = webhook;
    return {
      ...webhook,
      secret: this.#cipher.encrypt(id, secret),
      previous_secret: previous === '' ? '' : this.#cipher.encrypt(id, previous),
    };
  }
}
