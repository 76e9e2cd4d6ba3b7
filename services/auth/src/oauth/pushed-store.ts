import type { Queryable } from '../db/connection.ts';
import { type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, statement } from '../db/statement.ts';
import { toStoredForm } from '../keys/secrets.ts';

const pushedRow = {
  client_id: uuid,
  /** The form that the client has sent. */
  parameters: text,
  expires_at: timestamptz,
};

export type PushedRequest = RowOf<typeof pushedRow>;

const p = {
  ...parameters(uuid, 'clientId'),
  ...parameters(text, 'requestUri', 'form'),
  ...parameters(timestamptz, 'expiresAt'),
};

const insert = statement({})`
  insert into oauth_pushed_requests (request_uri, client_id, parameters, expires_at)
  values (${p.requestUri}, ${p.clientId}, ${p.form}, ${p.expiresAt})`;

const take = statement(pushedRow)`
  delete from oauth_pushed_requests where request_uri = ${p.requestUri} returning client_id, parameters, expires_at`;

/** Authorization requests that clients have pushed. */
export class PushedRequestStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  async insert(
    requestUri: string,
    { client_id, parameters: form, expires_at }: PushedRequest,
  ): Promise<void> {
    const values = { requestUri: toStoredForm(requestUri), clientId: client_id, form, expiresAt: expires_at };
    await insert.run(this.#sql, values);
  }

  /** The request of a URI, which can be used once. */
  async take(requestUri: string): Promise<PushedRequest | undefined> {
    return take.first(this.#sql, { requestUri: toStoredForm(requestUri) });
  }
}
