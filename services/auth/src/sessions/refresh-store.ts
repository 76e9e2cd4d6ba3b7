import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import { Batch, type Queryable } from '../db/connection.ts';
import { batchedInput, column, nextRefreshTokenId, noInstance } from '../db/fragments.ts';
import { bigint, boolean, integer, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, raw, type StatementRow, statement } from '../db/statement.ts';
import { type ColumnCipher, toStoredForm } from '../keys/secrets.ts';
import { toUser, type User, userColumns, userRow } from '../users/user.ts';
import { type Session, sessionColumns, sessionRow, toSession } from './store.ts';

/** State of a session with refresh tokens of version 2, which are signed and not stored. */
export interface RefreshCounter {
  /** The key in base64url. */
  readonly hmacKey: string;
  /** Counter of the current refresh token. */
  readonly counter: number;
}

interface Refresh {
  readonly sessionId: string;
  readonly userAgent: string;
  readonly ip: string;
  readonly at: Date;
}

/** A session as a refresh needs it. */
export interface RefreshableSession {
  readonly session: Session;
  readonly user: User;
  /** Absent for a session with refresh tokens of version 1. */
  readonly refreshCounter: RefreshCounter | undefined;
}

/** A refresh token of version 1. */
export interface StoredRefreshToken {
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** The stored form of its successor, unless that is revoked. */
  readonly activeChild: string | undefined;
  /** Whether it has a stored successor, revoked or not. */
  readonly hasChild: boolean;
}

/** Columns of a {@link RefreshCounter}, for `… sessions s`: {@link refreshCounterRow}. */
export const refreshCounterColumns = raw('s.refresh_token_hmac_key, s.refresh_token_counter');

export const refreshCounterRow = {
  refresh_token_hmac_key: text.orNull,
  refresh_token_counter: bigint.orNull,
};

/**
 * Reads {@link refreshCounterColumns}; undefined for a session with refresh tokens of version 1.
 */
export function toRefreshCounter(
  { refresh_token_hmac_key: sealed, refresh_token_counter: counter }: RowOf<typeof refreshCounterRow>,
  { sessionId, cipher }: { readonly sessionId: string; readonly cipher: ColumnCipher },
): RefreshCounter | undefined {
  return sealed === null
    ? undefined
    : { hmacKey: cipher.decrypt(sessionId, sealed), counter: Number(counter ?? 0) };
}

interface Rotation extends Refresh {
  /** As it is stored. */
  readonly token: string;
  readonly successor: string;
}

interface AuditedRotation extends Rotation {
  readonly audit: AuditEntry;
}

const p = {
  ...parameters(text, 'token', 'successor', 'hmacKey', 'userAgent', 'ip'),
  ...parameters(uuid, 'sessionId'),
  ...parameters(integer, 'from'),
  ...parameters(timestamptz, 'at'),
};

const refreshableRow = { ...userRow, ...sessionRow, ...refreshCounterRow };
const tokenRow = {
  token_revoked: boolean.orNull,
  token_updated_at: timestamptz.orNull,
  token_reused: boolean.orNull,
  token_active_child: text.orNull,
  token_has_child: boolean.orNull,
};

// PostgreSQL keeps the plan of a prepared statement that it made while the tables were small, when
// all indexes cost the same. These statements must therefore not allow a plan that scans all
// sessions of a user or all tokens of a session. See also `batchedInput`.

const findByToken = statement(tokenRow, refreshableRow)`
  select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns},
    t.revoked as token_revoked, t.updated_at as token_updated_at,
    t.revoked and t.session_id is null as token_reused,
    case when t.revoked then (
      select (array_agg(c.token order by c.id desc))[1] from refresh_tokens c where c.parent = t.token and c.revoked is not true
    ) end as token_active_child,
    case when t.revoked then (
      select true from refresh_tokens c where c.parent = t.token limit 1
    ) end as token_has_child
  from ${batchedInput<string>({ token: column(text, (token) => token) })}
  left join lateral (select * from refresh_tokens where token = i.token offset 0) t on true
  left join lateral (select * from sessions where id = t.session_id offset 0) s on true
  left join lateral (select * from users where id = s.user_id and deleted_at is null offset 0) u on true
  order by i.position`;

const findBySession = statement(refreshableRow)`
  select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns}
  from sessions s join users u on u.id = s.user_id
  where s.id = ${p.sessionId} and u.deleted_at is null`;

const findCurrent = statement({
  ...refreshableRow,
  current_token: text.orNull,
})`select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns}, t.token as current_token
  from sessions s join users u on u.id = s.user_id
  left join lateral (
    select token from refresh_tokens where session_id = s.id and revoked is not true order by id desc limit 1
  ) t on true
  where s.id = ${p.sessionId} and u.deleted_at is null`;

// One of concurrent statements finds the token unrevoked. The others wait for the lock on the
// session and then find it revoked. All statements lock the session before its tokens; otherwise a
// refresh and a logout could deadlock. The condition does not compare the session of the token,
// which never changes, because the planner would then scan all tokens of the session.
const rotate = statement({})`
  with refreshed as (
    update sessions set refreshed_at = ${p.at}, updated_at = ${p.at}, user_agent = ${p.userAgent}, ip = nullif(${p.ip}, '')::inet
    where id = ${p.sessionId} and exists (select 1 from refresh_tokens where token = ${p.token} and revoked is not true)
    returning id
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = ${p.at}
    where token = ${p.token} and revoked is not true and exists (select 1 from refreshed)
    returning user_id, session_id
  ), successor as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, ${p.successor}, ${p.token}, user_id, session_id, false, ${p.at}, ${p.at}, ${noInstance} from revoked
  ), audit as (${auditInsert('revoked')})
  select 1 from revoked`;

// `rotate` for many tokens with one commit. It waits for no lock: a token is left out when its
// session is locked, has been revoked concurrently, or is twice in the batch.
const rotateMany = statement({ position: integer })`
  with input as materialized (
    select * from ${batchedInput<AuditedRotation>({
      token: column(text, ({ token }) => token),
      successor: column(text, ({ successor }) => successor),
      session_id: column(uuid, ({ sessionId }) => sessionId),
      user_agent: column(text, ({ userAgent }) => userAgent),
      ip: column(text, ({ ip }) => ip),
      at: column(timestamptz, ({ at }) => at),
      audit: column(text, ({ audit }) => JSON.stringify(audit.payload)),
    })}
  ), locked as materialized (
    select i.* from input i, lateral (
      select id from sessions where id = i.session_id for no key update skip locked) s
  ), revoked as (
    update refresh_tokens t set revoked = true, updated_at = i.at from locked i
    where t.token = i.token and t.revoked is not true
    returning t.user_id, i.*
  ), refreshed as (
    update sessions s set refreshed_at = r.at at time zone 'utc', updated_at = r.at, user_agent = r.user_agent,
      ip = nullif(r.ip, '')::inet
    from revoked r where s.id = r.session_id
  ), successors as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, successor, token, user_id, session_id, false, at, at, ${noInstance} from revoked
  ), audited as (
    insert into audit_log_entries (id, instance_id, payload, created_at, ip_address)
    select gen_random_uuid(), ${noInstance}, audit::json, at, ip from revoked
  )
  select position::int from revoked`;

const touch = statement({})`
  update sessions set refreshed_at = ${p.at}, updated_at = ${p.at} where id = ${p.sessionId}`;

const advance = statement({})`
  with refreshed as (
    update sessions set refresh_token_counter = refresh_token_counter + 1,
      refreshed_at = ${p.at}, updated_at = ${p.at}, user_agent = ${p.userAgent}, ip = nullif(${p.ip}, '')::inet
    where id = ${p.sessionId} and refresh_token_counter = ${p.from}
    returning id
  ), audit as (${auditInsert('refreshed')})
  select 1 from refreshed`;

const upgrade = statement({})`
  with refreshed as (
    update sessions set refresh_token_hmac_key = ${p.hmacKey}, refresh_token_counter = 0,
      refreshed_at = ${p.at}, updated_at = ${p.at}, user_agent = ${p.userAgent}, ip = nullif(${p.ip}, '')::inet
    where id = ${p.sessionId} and refresh_token_hmac_key is null
      and exists (select 1 from refresh_tokens where token = ${p.token} and revoked is not true)
    returning id
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = ${p.at}
    where token = ${p.token} and revoked is not true and exists (select 1 from refreshed)
  ), audit as (${auditInsert('refreshed')})
  select 1 from refreshed`;

/** Connections of the pool that lookups of tokens may use. */
const maxConcurrentLookups = 4;
/** While these commit, further rotations gather in the next statement. */
const maxConcurrentRotations = 2;

/**
 * Refresh tokens: stored ones (version 1), and counters of sessions (version 2). Of concurrent
 * writes for one token exactly one returns true.
 */
export class RefreshTokenStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;
  readonly #tokens: Batch<string, StatementRow<typeof findByToken>>;
  readonly #rotations: Batch<AuditedRotation, boolean>;

  constructor(sql: Queryable, cipher: ColumnCipher) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#tokens = new Batch({
      maxConcurrent: maxConcurrentLookups,
      run: (items) => findByToken.run(sql, { items }),
    });
    this.#rotations = new Batch({
      maxConcurrent: maxConcurrentRotations,
      run: (rotations) => runRotations(sql, rotations),
    });
  }

  /** The session of a stored token; `reused` if the session was ended because of reuse. */
  async findByToken(
    token: string,
  ): Promise<(RefreshableSession & { readonly token: StoredRefreshToken }) | 'reused' | undefined> {
    const row = await this.#tokens.add(toStoredForm(token));
    if (row.token_reused === true) return 'reused';
    // Null without a token, or if its user is deleted.
    if (row.id === null) return undefined;
    return { ...toRefreshableSession(row, this.#cipher), token: toStoredToken(row) };
  }

  async findBySession(sessionId: string): Promise<RefreshableSession | undefined> {
    const row = await findBySession.first(this.#sql, { sessionId });
    return row && toRefreshableSession(row, this.#cipher);
  }

  /** A session with its current stored token, which is empty for a session of version 2. */
  async findCurrent(
    sessionId: string,
  ): Promise<(RefreshableSession & { readonly storedToken: string }) | undefined> {
    const row = await findCurrent.first(this.#sql, { sessionId });
    return row && { ...toRefreshableSession(row, this.#cipher), storedToken: row.current_token ?? '' };
  }

  /** Revokes a stored token and stores its successor. */
  async rotate(tokens: Rotation, audit: AuditEntry): Promise<boolean> {
    const rotation = { ...tokens, successor: toStoredForm(tokens.successor), audit };
    return (await this.#rotations.add(rotation)) || rotate.matches(this.#sql, rotation);
  }

  /** Increments the counter, if it still is `from`. */
  async advance(refresh: Refresh & { readonly from: number }, audit: AuditEntry): Promise<boolean> {
    return advance.matches(this.#sql, { ...refresh, audit });
  }

  /** Revokes a stored token and changes its session over to version 2, with the counter 0. */
  async upgrade(
    refresh: Refresh & {
      /** As it is stored. */
      readonly token: string;
      readonly hmacKey: string;
    },
    audit: AuditEntry,
  ): Promise<boolean> {
    const hmacKey = this.#cipher.encrypt(refresh.sessionId, refresh.hmacKey);
    return upgrade.matches(this.#sql, { ...refresh, hmacKey, audit });
  }

  /** Records a refresh that issues no new token. */
  async touch(sessionId: string, at: Date): Promise<void> {
    await touch.run(this.#sql, { sessionId, at });
  }
}

function toRefreshableSession(row: RowOf<typeof refreshableRow>, cipher: ColumnCipher): RefreshableSession {
  const session = toSession(row);
  const refreshCounter = toRefreshCounter(row, { sessionId: session.id, cipher });
  return { session, user: toUser(row), refreshCounter };
}

function toStoredToken(r: StatementRow<typeof findByToken>): StoredRefreshToken {
  return {
    revoked: r.token_revoked === true,
    updatedAt: r.token_updated_at ?? new Date(0),
    activeChild: r.token_active_child ?? undefined,
    hasChild: r.token_has_child === true,
  };
}

/**
 * Returns whether each token is known to be rotated. After an error none is: each is then tried by
 * a statement of its own, so that one with invalid values does not affect the others.
 */
async function runRotations(
  sql: Queryable,
  rotations: readonly AuditedRotation[],
): Promise<readonly boolean[]> {
  const rows = await rotateMany.run(sql, { items: rotations }).catch(() => []);
  const rotated = new Set(rows.map(({ position }) => position));
  return rotations.map((_, index) => rotated.has(index + 1));
}
