import { nextRefreshTokenId, noInstance, type Parameter } from '../db/connection.ts';
import { type ColumnCipher, toStoredForm } from '../keys/secrets.ts';
import { type RefreshCounter, refreshCounterColumns, toRefreshCounter } from '../sessions/refresh-store.ts';

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

/** The parameters of {@link raiseSql}, which are `$2` to `$7`. */
export function raiseParameters(session: RaisedSession): Parameter[] {
  const { factorId, userId, sessionId, method, refreshToken, at } = session;
  return [factorId, userId, sessionId, method, toStoredForm(refreshToken), at];
}

/**
 * Parts of a `with` clause that raise the session if `accepted`, another part, has a row. Sessions
 * of the user below `aal2` are deleted. The caller locks the user row first: two sessions would
 * otherwise deadlock on each other's session.
 */
export function raiseSql(accepted: string): string {
  return `raised as (
    update sessions s set aal = 'aal2', factor_id = $2, updated_at = $7, refresh_token_counter = refresh_token_counter + 2,
      refreshed_at = case when refresh_token_hmac_key is null then refreshed_at else $7::timestamptz at time zone 'utc' end
    where id = $4 and user_id = $3 and exists (select 1 from ${accepted})
    returning id, ${refreshCounterColumns}
  ), proof as (
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    select gen_random_uuid(), id, $5, $7, $7 from raised
    on conflict (session_id, authentication_method) do update set updated_at = excluded.updated_at
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $7
    where session_id = (select id from raised) and revoked is not true
    returning id, token
  ), successor as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, $6, coalesce((select token from revoked order by id desc limit 1), ''), $3::uuid::text, id, false, $7, $7,
      ${noInstance}
    from raised where refresh_token_hmac_key is null
  ), lower_sessions as (
    delete from sessions
    where user_id = $3 and id <> $4 and coalesce(aal, 'aal1') < 'aal2' and exists (select 1 from raised)
  )`;
}

/** Reads the row of `raised`. */
export function toRaise(
  row: Readonly<Record<string, unknown>>,
  sessionId: string,
  cipher: ColumnCipher,
): SessionRaise {
  return { refreshCounter: toRefreshCounter(row, { sessionId, cipher }) };
}
