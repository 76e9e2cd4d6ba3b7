import type { Queryable } from '../db/connection.ts';
import { boolean, integer, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, statement } from '../db/statement.ts';
import { toStoredForm } from '../keys/secrets.ts';
import { type Authorization, requestColumns, requestRow } from './authorization-store.ts';

interface NewDeviceCodes {
  readonly requestId: string;
  readonly deviceCode: string;
  readonly userCode: string;
  readonly expiresAt: Date;
  readonly intervalSeconds: number;
}

const polledRow = { ...requestRow, code_expires_at: timestamptz, is_early: boolean };

/** The request of a device that asks for its token. */
export type PolledRequest = RowOf<typeof polledRow>;

const p = {
  ...parameters(uuid, 'requestId'),
  ...parameters(text, 'deviceCode', 'userCode'),
  ...parameters(timestamptz, 'expiresAt', 'at'),
  ...parameters(integer, 'intervalSeconds', 'slowDownSeconds'),
};

const insert = statement({})`
  insert into oauth_device_codes (request_id, device_code, user_code, expires_at, poll_interval)
  values (${p.requestId}, ${p.deviceCode}, ${p.userCode}, ${p.expiresAt}, ${p.intervalSeconds})
  on conflict (user_code) do nothing returning request_id`;

const findRequest = statement({ authorization_id: text })`
  select a.authorization_id from oauth_device_codes d join oauth_authorizations a on a.id = d.request_id
  where d.user_code = ${p.userCode} and d.expires_at > ${p.at} and a.status = 'pending'`;

// RFC 8628 §3.5: the interval grows with each request that comes too early.
const poll = statement(polledRow)`
  with known as (
    select request_id, polled_at + make_interval(secs => poll_interval) > ${p.at} as is_early
    from oauth_device_codes where device_code = ${p.deviceCode} for update
  ), polled as (
    update oauth_device_codes d
    set polled_at = ${p.at}, poll_interval = poll_interval + case when k.is_early then ${p.slowDownSeconds} else 0 end
    from known k where d.request_id = k.request_id
    returning d.request_id, d.expires_at as code_expires_at, coalesce(k.is_early, false) as is_early
  )
  select ${requestColumns}, code_expires_at, is_early
  from (select request_id as polled_id, code_expires_at, is_early from polled) p
    join oauth_authorizations on id = polled_id left join oidc_authorizations on request_id = id`;

/** The codes of devices. */
export class DeviceCodeStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Returns false if the code for the user is in use. */
  async insert({ deviceCode, ...codes }: NewDeviceCodes): Promise<boolean> {
    return insert.matches(this.#sql, { ...codes, deviceCode: toStoredForm(deviceCode) });
  }

  /** The id of the pending request with this code. */
  async findRequest(userCode: string, at: Date): Promise<Authorization['authorization_id'] | undefined> {
    return (await findRequest.first(this.#sql, { userCode, at }))?.authorization_id;
  }

  /** The request of a device, whose time is recorded. */
  async poll(
    deviceCode: string,
    { at, slowDownSeconds }: { readonly at: Date; readonly slowDownSeconds: number },
  ): Promise<PolledRequest | undefined> {
    return poll.first(this.#sql, { deviceCode: toStoredForm(deviceCode), at, slowDownSeconds });
  }
}
