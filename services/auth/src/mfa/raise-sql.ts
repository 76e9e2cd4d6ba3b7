import { nextRefreshTokenId, noInstance } from '../db/fragments.ts';
import { type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { fragment, Parameter, parameters, raw } from '../db/statement.ts';
import { type ColumnCipher, toStoredForm } from '../keys/secrets.ts';
import {
  type RefreshCounter,
  refreshCounterColumns,
  refreshCounterRow,
  toRefreshCounter,
} from '../sessions/refresh-store.ts';

/** A session that a second factor raises to `aal2`. */
export interface RaisedSession {
  readonly factorId: string;
  readonly userId: string;
  readonly sessionId: string;
  /** Value of the claim `amr`. */
  readonly method: string;
  /** Replaces the refresh tokens of a session that stores them. */
  readonly refreshToken: string;
  readonly at: Date;
}

/**
 * Result of a raise. The refresh counter is that of a session that does not store its tokens: it
 * rises by two, so that no earlier token counts as the previous one.
 */
export interface SessionRaise {
  readonly refreshCounter: RefreshCounter | undefined;
}

/** {@link raiseSql} reads the members of {@link RaisedSession}. */
export const raiseParameters = {
  ...parameters(uuid, 'factorId', 'userId', 'sessionId'),
  ...parameters(text, 'method'),
  ...parameters(timestamptz, 'at'),
  refreshToken: new Parameter(text, ({ refreshToken }: Pick<RaisedSession, 'refreshToken'>) =>
    toStoredForm(refreshToken),
  ),
};
const p = raiseParameters;

/** The row of `raised`. */
export const raisedRow = { id: uuid, ...refreshCounterRow };

/**
 * Parts of a `with` clause that raise the session if `accepted`, another part, has a row. Sessions
 * of the user below `aal2` are deleted, except those of OAuth clients, whose consent has required
 * the second factor. The caller locks the user row first: two sessions would
 * otherwise deadlock on each other's session.
 */
export function raiseSql(accepted: string) {
  return fragment`raised as (
    update sessions s set aal = 'aal2', factor_id = ${p.factorId}, updated_at = ${p.at}, refresh_token_counter = refresh_token_counter + 2,
      refreshed_at = case when refresh_token_hmac_key is null then refreshed_at else ${p.at}::timestamptz at time zone 'utc' end
    where id = ${p.sessionId} and user_id = ${p.userId} and exists (select 1 from ${raw(accepted)})
    returning id, ${refreshCounterColumns}
  ), proof as (
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    select gen_random_uuid(), id, ${p.method}, ${p.at}, ${p.at} from raised
    on conflict (session_id, authentication_method) do update set updated_at = excluded.updated_at
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = ${p.at}
    where session_id = (select id from raised) and revoked is not true
    returning id, token
  ), successor as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, ${p.refreshToken},
      coalesce((select token from revoked order by id desc limit 1), ''),
      ${p.userId}::uuid::text, id, false, ${p.at}, ${p.at}, ${noInstance}
    from raised where refresh_token_hmac_key is null
  ), lower_sessions as (
    delete from sessions
    where user_id = ${p.userId} and id <> ${p.sessionId} and coalesce(aal, 'aal1') < 'aal2'
      and to_jsonb(sessions) ->> 'oauth_client_id' is null
      and exists (select 1 from raised)
  )`;
}

export function toRaise(row: RowOf<typeof raisedRow>, sessionId: string, cipher: ColumnCipher): SessionRaise {
  return { refreshCounter: toRefreshCounter(row, { sessionId, cipher }) };
}
