import type {
  OneTimeToken,
  OneTimeTokenStore,
  OneTimeTokenType,
} from '../../../ports/one-time-token-store.ts';
import { auditInsert, auditParameters } from '../audit/audit-insert.ts';
import { type Queryable, query } from '../query.ts';
import { userColumns, userOf } from '../users/user-columns.ts';

// The expression after `then` is only reached for its own types; a token without such a column leaves the times alone.
const replace = `
  with tokens as (
    select * from jsonb_to_recordset($2::jsonb) as t(type one_time_token_type, hash text, relates_to text)
  ), replaced as (
    insert into one_time_tokens (id, user_id, token_type, token_hash, relates_to, created_at, updated_at)
    select gen_random_uuid(), $1::uuid, type, hash, relates_to, $3, $3 from tokens
    on conflict (user_id, token_type) do update
      set token_hash = excluded.token_hash, relates_to = excluded.relates_to,
        created_at = excluded.created_at, updated_at = excluded.updated_at
  ), noted as (
    update users set
      confirmation_sent_at = case when has('confirmation_token') then $3 else confirmation_sent_at end,
      recovery_sent_at = case when has('recovery_token') then $3 else recovery_sent_at end,
      email_change_sent_at = case when has('email_change_token_new') then $3 else email_change_sent_at end,
      phone_change_sent_at = case when has('phone_change_token') then $3 else phone_change_sent_at end,
      reauthentication_sent_at = case when has('reauthentication_token') then $3 else reauthentication_sent_at end,
      updated_at = $3
    where id = $1::uuid
  )
  ${auditInsert(4)}`.replaceAll(/has\('(\w+)'\)/g, "exists (select 1 from tokens where type = '$1')");

const find = `select ${userColumns}, t.token_type, t.token_hash, t.relates_to, t.created_at at time zone 'utc' as sent_at
  from one_time_tokens t join users u on u.id = t.user_id
  where t.token_hash = any($1::text[]) and t.token_type = any($2::text[]::one_time_token_type[]) and u.deleted_at is null
  limit 1`;

const spend = `delete from one_time_tokens
  where user_id = $1 and token_type = $2::one_time_token_type and token_hash = $3 returning 1`;

const clear = `delete from one_time_tokens where user_id = $1 and token_type <> all($2::text[]::one_time_token_type[])`;

interface TokenRow {
  readonly token_type: OneTimeTokenType;
  readonly token_hash: string;
  readonly relates_to: string;
  readonly sent_at: Date;
}

/** {@link OneTimeTokenStore} over PostgreSQL. */
export function oneTimeTokens(sql: Queryable): OneTimeTokenStore {
  return {
    async replace(tokens, audit) {
      const [{ userId, at }] = tokens;
      const rows = tokens.map(({ type, hash, relatesTo }) => ({ type, hash, relates_to: relatesTo }));
      await query(sql, replace, [userId, rows, at, ...auditParameters(audit)]);
    },
    async find(hashes, types) {
      const [row] = await query(sql, find, [hashes, types]);
      if (row === undefined) return undefined;
      const user = userOf(row);
      // Parsed boundary: these are the columns selected above, with the types of the schema.
      const {
        token_type: type,
        token_hash: hash,
        relates_to: relatesTo,
        sent_at: at,
      } = row as unknown as TokenRow;
      const token: OneTimeToken = { userId: user.id, type, hash, relatesTo, at };
      return { token, user };
    },
    async spend({ userId, type, hash }) {
      return (await query(sql, spend, [userId, type, hash])).length > 0;
    },
    async clear(userId, { except = [] } = {}) {
      await query(sql, clear, [userId, except]);
    },
  };
}
