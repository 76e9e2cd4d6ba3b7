import { type AuditEntry, auditInsert, auditParameters } from '../audit/audit-log.ts';
import {
  Batch,
  batchedInput,
  nextRefreshTokenId,
  noInstance,
  type Queryable,
  query,
  type Row,
} from '../db/connection.ts';
import { type ColumnCipher, toStoredForm } from '../keys/secrets.ts';
import { toUser, type User, userColumns } from '../users/user.ts';
import { type Session, sessionColumns, toSession } from './store.ts';

/** State of a session with refresh tokens of version 2, which are signed and not stored. */
export interface RefreshCounter {
  /** In base64url. */
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

/** Columns of a {@link RefreshCounter}, for `… sessions s`; {@link toRefreshCounter} reads them. */
export const refreshCounterColumns = 's.refresh_token_hmac_key, s.refresh_token_counter';

interface RefreshCounterRow {
  readonly refresh_token_hmac_key: string | null;
  /** A bigint, which the driver returns as text. */
  readonly refresh_token_counter: string | null;
}

/**
 * Reads {@link refreshCounterColumns}; undefined for a session with refresh tokens of version 1.
 */
export function toRefreshCounter(
  row: Row,
  { sessionId, cipher }: { readonly sessionId: string; readonly cipher: ColumnCipher },
): RefreshCounter | undefined {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const { refresh_token_hmac_key: sealed, refresh_token_counter: counter } =
    row as unknown as RefreshCounterRow;
  return sealed === null
    ? undefined
    : { hmacKey: cipher.decrypt(sessionId, sealed), counter: Number(counter ?? 0) };
}

// PostgreSQL keeps the plan of a prepared statement that it made while the tables were small, when
// all indexes cost the same. These statements must therefore not allow a plan that scans all
// sessions of a user or all tokens of a session. See also `batchedInput`.

const findByToken = `select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns},
    t.revoked as token_revoked, t.updated_at as token_updated_at,
    t.revoked and t.session_id is null as token_reused,
    case when t.revoked then (
      select (array_agg(c.token order by c.id desc))[1] from refresh_tokens c where c.parent = t.token and c.revoked is not true
    ) end as token_active_child,
    case when t.revoked then (
      select true from refresh_tokens c where c.parent = t.token limit 1
    ) end as token_has_child
  from ${batchedInput('token text')}
  left join lateral (select * from refresh_tokens where token = i.token offset 0) t on true
  left join lateral (select * from sessions where id = t.session_id offset 0) s on true
  left join lateral (select * from users where id = s.user_id and deleted_at is null offset 0) u on true
  order by i.position`;

const findBySession = `select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns}
  from sessions s join users u on u.id = s.user_id
  where s.id = $1 and u.deleted_at is null`;

const findCurrent = `select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns}, t.token as current_token
  from sessions s join users u on u.id = s.user_id
  left join lateral (
    select token from refresh_tokens where session_id = s.id and revoked is not true order by id desc limit 1
  ) t on true
  where s.id = $1 and u.deleted_at is null`;

// One of concurrent statements finds the token unrevoked. The others wait for the lock on the
// session and then find it revoked. All statements lock the session before its tokens; otherwise a
// refresh and a logout could deadlock. The condition does not compare the session of the token,
// which never changes, because the planner would then scan all tokens of the session.
const rotate = `
  with refreshed as (
    update sessions set refreshed_at = $6, updated_at = $6, user_agent = $4, ip = nullif($5, '')::inet
    where id = $3 and exists (select 1 from refresh_tokens where token = $1 and revoked is not true)
    returning id
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $6
    where token = $1 and revoked is not true and exists (select 1 from refreshed)
    returning user_id, session_id
  ), successor as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, $2, $1, user_id, session_id, false, $6, $6, ${noInstance} from revoked
  ), audit as (${auditInsert(7, 'revoked')})
  select 1 from revoked`;

// `rotate` for many tokens with one commit. It waits for no lock: a token is left out when its
// session is locked, has been revoked concurrently, or is twice in the batch.
const rotateMany = `
  with input as materialized (
    select * from ${batchedInput('token text', 'successor text', 'session_id uuid', 'user_agent text', 'ip text', 'at timestamptz', 'audit text')}
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

const touch = 'update sessions set refreshed_at = $2, updated_at = $2 where id = $1';

const advance = `
  with refreshed as (
    update sessions set refresh_token_counter = refresh_token_counter + 1,
      refreshed_at = $5, updated_at = $5, user_agent = $3, ip = nullif($4, '')::inet
    where id = $1 and refresh_token_counter = $2
    returning id
  ), audit as (${auditInsert(6, 'refreshed')})
  select 1 from refreshed`;

const upgrade = `
  with refreshed as (
    update sessions set refresh_token_hmac_key = $3, refresh_token_counter = 0,
      refreshed_at = $6, updated_at = $6, user_agent = $4, ip = nullif($5, '')::inet
    where id = $2 and refresh_token_hmac_key is null
      and exists (select 1 from refresh_tokens where token = $1 and revoked is not true)
    returning id
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $6
    where token = $1 and revoked is not true and exists (select 1 from refreshed)
  ), audit as (${auditInsert(7, 'refreshed')})
  select 1 from refreshed`;

interface Rotation extends Refresh {
  /** As it is stored. */
  readonly token: string;
  readonly successor: string;
}

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
  readonly #tokens: Batch<string, Row>;
  readonly #rotations: Batch<Rotation & { readonly audit: AuditEntry }, boolean>;

  constructor(sql: Queryable, cipher: ColumnCipher) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#tokens = new Batch({
      maxConcurrent: maxConcurrentLookups,
      run: (tokens) => query(sql, findByToken, [tokens]),
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
    const found = row.id === null ? undefined : toRefreshableSession(row, this.#cipher);
    return found && { ...found, token: toStoredToken(row) };
  }

  async findBySession(sessionId: string): Promise<RefreshableSession | undefined> {
    const [row] = await query(this.#sql, findBySession, [sessionId]);
    return row && toRefreshableSession(row, this.#cipher);
  }

  /** A session with its current stored token, which is empty for a session of version 2. */
  async findCurrent(
    sessionId: string,
  ): Promise<(RefreshableSession & { readonly storedToken: string }) | undefined> {
    const [row] = await query(this.#sql, findCurrent, [sessionId]);
    const found = row && toRefreshableSession(row, this.#cipher);
    return found && { ...found, storedToken: typeof row.current_token === 'string' ? row.current_token : '' };
  }

  /** Revokes a stored token and stores its successor. */
  async rotate(tokens: Rotation, audit: AuditEntry): Promise<boolean> {
    const rotation = { ...tokens, successor: toStoredForm(tokens.successor) };
    if (await this.#rotations.add({ ...rotation, audit })) return true;
    const { token, successor, sessionId, userAgent, ip, at } = rotation;
    const parameters = [token, successor, sessionId, userAgent, ip, at, ...auditParameters(audit)];
    return (await query(this.#sql, rotate, parameters)).length > 0;
  }

  /** Increments the counter, if it still is `from`. */
  async advance(
    { sessionId, from, userAgent, ip, at }: Refresh & { readonly from: number },
    audit: AuditEntry,
  ): Promise<boolean> {
    const parameters = [sessionId, from, userAgent, ip, at, ...auditParameters(audit)];
    return (await query(this.#sql, advance, parameters)).length > 0;
  }

  /** Revokes a stored token and changes its session over to version 2, with the counter 0. */
  async upgrade(
    {
      token,
      sessionId,
      hmacKey,
      userAgent,
      ip,
      at,
    }: Refresh & {
      /** As it is stored. */
      readonly token: string;
      readonly hmacKey: string;
    },
    audit: AuditEntry,
  ): Promise<boolean> {
    const sealed = this.#cipher.encrypt(sessionId, hmacKey);
    const parameters = [token, sessionId, sealed, userAgent, ip, at, ...auditParameters(audit)];
    return (await query(this.#sql, upgrade, parameters)).length > 0;
  }

  /** Records a refresh that issues no new token. */
  async touch(sessionId: string, at: Date): Promise<void> {
    await query(this.#sql, touch, [sessionId, at]);
  }
}

function toRefreshableSession(row: Row, cipher: ColumnCipher): RefreshableSession | undefined {
  const session = toSession(row);
  if (session === undefined) return undefined;
  const refreshCounter = toRefreshCounter(row, { sessionId: session.id, cipher });
  return { session, user: toUser(row), refreshCounter };
}

interface TokenRow {
  readonly token_revoked: boolean | null;
  readonly token_updated_at: Date;
  readonly token_active_child: string | null;
  readonly token_has_child: boolean | null;
}

function toStoredToken(row: Row): StoredRefreshToken {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as TokenRow;
  return {
    revoked: r.token_revoked === true,
    updatedAt: r.token_updated_at,
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
  rotations: readonly (Rotation & { readonly audit: AuditEntry })[],
): Promise<readonly boolean[]> {
  const parameters = [
    rotations.map(({ token }) => token),
    rotations.map(({ successor }) => successor),
    rotations.map(({ sessionId }) => sessionId),
    rotations.map(({ userAgent }) => userAgent),
    rotations.map(({ ip }) => ip),
    rotations.map(({ at }) => at.toISOString()),
    rotations.map(({ audit }) => JSON.stringify(audit.payload)),
  ];
  const rows = await query(sql, rotateMany, parameters).catch(() => []);
  const rotated = new Set(rows.map(({ position }) => position));
  return rotations.map((_, index) => rotated.has(index + 1));
}
