import { type AuditEntry, auditInsert, auditParameters } from '../audit/audit-log.ts';
import {
  Batch,
  batchedInput,
  lockOwner,
  nextRefreshTokenId,
  noInstance,
  type Queryable,
  query,
  type Row,
} from '../db/connection.ts';
import { type ColumnCipher, toStoredForm } from '../keys/secrets.ts';
import { toUser, type User, userColumns } from '../users/user.ts';

interface NewSession {
  readonly id: string;
  readonly userId: string;
  readonly aal: Session['aal'];
  /** Value of the claim `amr`. */
  readonly method: string;
  readonly userAgent: string;
  readonly ip: string;
  /** Empty for none. */
  readonly tag: string;
  readonly refreshToken: string;
  /**
   * Signs the refresh tokens of version 2, which are not stored. `refreshToken` is the one with
   * counter 0.
   */
  readonly hmacKey?: string;
  readonly at: Date;
}

/** Which sessions of a user end: all, one, or all but one. */
export type LogoutScope = 'global' | 'local' | 'others';

/** A user has few sessions; thousands are made by a program. */
const maxListedSessions = 100;

/** Columns of a session, for `… sessions s`; {@link toSession} reads them. */
export const sessionColumns = `
  s.id as session_id, s.user_id as session_user_id, s.aal as session_aal, s.factor_id as session_factor_id,
  coalesce(s.created_at, 'epoch') as session_created_at, s.refreshed_at at time zone 'utc' as session_refreshed_at,
  s.not_after as session_not_after, s.user_agent as session_user_agent, host(s.ip) as session_ip, s.tag as session_tag,
  (select json_agg(json_build_object('method', a.authentication_method, 'at', a.updated_at) order by a.updated_at desc, a.id)
    from mfa_amr_claims a where a.session_id = s.id) as session_methods`;

interface SessionRow {
  readonly session_id: string | null;
  readonly session_user_id: string;
  readonly session_aal: Session['aal'] | null;
  readonly session_factor_id: string | null;
  readonly session_created_at: Date;
  readonly session_refreshed_at: Date | null;
  readonly session_not_after: Date | null;
  readonly session_user_agent: string | null;
  readonly session_ip: string | null;
  readonly session_tag: string | null;
  readonly session_methods: readonly { readonly method: string; readonly at: string }[] | null;
}

/** Reads {@link sessionColumns}; undefined where an outer join found none. */
export function toSession(row: Row): Session | undefined {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as SessionRow;
  if (r.session_id === null) return undefined;
  return {
    id: r.session_id,
    userId: r.session_user_id,
    aal: r.session_aal ?? 'aal1',
    factorId: r.session_factor_id ?? undefined,
    createdAt: r.session_created_at,
    refreshedAt: r.session_refreshed_at ?? undefined,
    notAfter: r.session_not_after ?? undefined,
    userAgent: r.session_user_agent ?? '',
    ip: r.session_ip ?? '',
    tag: r.session_tag ?? '',
    methods: r.session_methods?.map(({ method, at }) => ({ method, at: new Date(at) })) ?? [],
  };
}

const start = `
  with new_session as (
    insert into sessions (id, user_id, aal, user_agent, ip, created_at, updated_at, tag, refresh_token_hmac_key, refresh_token_counter)
    values ($1, $2, $3::aal_level, $5, nullif($6, '')::inet, $8, $8, nullif($9, ''), $10::text, case when $10 is not null then 0 end)
  ), new_method as (
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    values (gen_random_uuid(), $1, $4, $8, $8)
  ), new_token as (
    insert into refresh_tokens (id, token, user_id, session_id, revoked, parent, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, $7, $2::uuid::text, $1, false, '', $8, $8, ${noInstance} where $10 is null
  ), signed_in as (
    update users set last_sign_in_at = $8, updated_at = $8 where id = $2
  )
  ${auditInsert(11)}`;

// See `batchedInput` for `offset 0`. No index serves `is not distinct from`, so no plan scans all
// sessions of a user.
const findWithUser = `select ${userColumns}, ${sessionColumns}
  from ${batchedInput('user_id uuid', 'session_id uuid')}
  left join lateral (select * from users where id = i.user_id and deleted_at is null offset 0) u on true
  left join lateral (
    select * from sessions where id = i.session_id and user_id is not distinct from i.user_id offset 0
  ) s on true
  order by i.position`;

const list = `select ${sessionColumns} from sessions s where s.user_id = $1
  order by s.created_at desc, s.id limit ${maxListedSessions}`;

function tagGroup(session: string): string {
  return `case when ${session}.tag = any($2::text[]) then ${session}.tag else coalesce(($2::text[])[1], '') end`;
}

// Ids break the tie between sessions that started in the same instant.
const hasNewer = `select 1 from sessions mine join sessions other on other.user_id = mine.user_id
  where mine.id = $1 and (other.created_at, other.id) > (mine.created_at, mine.id)
    and ${tagGroup('other')} = ${tagGroup('mine')}
  limit 1`;

// Refresh tokens and `amr` claims are deleted in cascade.
function endWhere(condition: string): string {
  return `with owner as (${lockOwner('$1')}), ended as (
      delete from sessions where user_id = (select id from owner) and (${condition})
    ) ${auditInsert(3)}`;
}

// Tokens stay until the cleanup, without the session: a later use of any of them is reuse, too.
// Locks the session before its tokens, as refreshes do.
const endReused = `with owner as (${lockOwner('$1')}), reused as materialized (
    select id from sessions where id = $2 and user_id = (select id from owner) for update
  ), kept as (
    update refresh_tokens set revoked = true, session_id = null where session_id = (select id from reused)
  ), ended as (
    delete from sessions where id = (select id from reused)
  ) ${auditInsert(3, 'reused')}`;

const end: Readonly<Record<LogoutScope | 'reused', string>> = {
  global: endWhere('$2::uuid is null or true'),
  local: endWhere('id = $2'),
  others: endWhere('id is distinct from $2'),
  reused: endReused,
};

const confirm = `insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
  select gen_random_uuid(), id, $2, $3, $3 from sessions where id = $1
  on conflict (session_id, authentication_method) do update set updated_at = excluded.updated_at`;

/** The ids of an access token. */
interface CallerKey {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

/** Connections of the pool that lookups of callers may use. */
const maxConcurrentLookups = 4;

/** Sessions, except for what a refresh does (see `RefreshTokenStore`). */
export class SessionStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;
  readonly #onChange: ((userId: string) => void) | undefined;
  readonly #callers: Batch<CallerKey, Row>;

  constructor(sql: Queryable, cipher: ColumnCipher, onChange?: (userId: string) => void) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#onChange = onChange;
    this.#callers = new Batch({
      maxConcurrent: maxConcurrentLookups,
      run: (keys) =>
        query(sql, findWithUser, [
          keys.map(({ userId }) => userId),
          keys.map(({ sessionId }) => sessionId ?? null),
        ]),
    });
  }

  /** Starts a session and updates the time of the user's last sign-in. */
  async start(session: NewSession, audit: AuditEntry): Promise<void> {
    await query(this.#sql, start, [
      session.id,
      session.userId,
      session.aal,
      session.method,
      session.userAgent,
      session.ip,
      toStoredForm(session.refreshToken),
      session.at,
      session.tag,
      session.hmacKey === undefined ? null : this.#cipher.encrypt(session.id, session.hmacKey),
      ...auditParameters(audit),
    ]);
  }

  /**
   * A user and one of their sessions; `session` is absent when it has ended or is another user's.
   */
  async findWithUser(
    userId: string,
    sessionId: string | undefined,
  ): Promise<{ readonly user: User; readonly session: Session | undefined } | undefined> {
    const row = await this.#callers.add({ userId, sessionId });
    return row.id === null ? undefined : { user: toUser(row), session: toSession(row) };
  }

  /** The latest {@link maxListedSessions} sessions of a user, newest first. */
  async list(userId: string): Promise<readonly Session[]> {
    const rows = await query(this.#sql, list, [userId]);
    return rows.flatMap((row) => toSession(row) ?? []);
  }

  /**
   * Whether the user has started a later session with the same tag. A session whose tag is not in
   * `tags` belongs to the first of them.
   */
  async hasNewer(sessionId: string, tags: readonly string[]): Promise<boolean> {
    return (await query(this.#sql, hasNewer, [sessionId, tags])).length > 0;
  }

  /** Records that the user has authenticated again. `method` is a value of the claim `amr`. */
  async confirm(sessionId: string, method: string, at: Date): Promise<void> {
    await query(this.#sql, confirm, [sessionId, method, at]);
  }

  /** `reused`: one session, whose refresh tokens have been used twice. */
  async end(
    scope: LogoutScope | 'reused',
    { userId, sessionId }: { readonly userId: string; readonly sessionId: string | undefined },
    audit: AuditEntry,
  ): Promise<void> {
    await query(this.#sql, end[scope], [userId, sessionId ?? null, ...auditParameters(audit)]);
    this.#onChange?.(userId);
  }
}

/** Number of factors that a session has verified: `aal1` one, `aal2` two. */
export type AssuranceLevel = 'aal1' | 'aal2' | 'aal3';

/** `method` is a value of the claim `amr`. */
interface AuthenticationMethod {
  readonly method: string;
  readonly at: Date;
}

export interface Session {
  readonly id: string;
  readonly userId: string;
  readonly aal: AssuranceLevel;
  readonly factorId: string | undefined;
  readonly createdAt: Date;
  /** Time of the last refresh; absent before the first. */
  readonly refreshedAt: Date | undefined;
  readonly notAfter: Date | undefined;
  readonly userAgent: string;
  readonly ip: string;
  /** Kind of session, as named by the client; empty for none. */
  readonly tag: string;
  /** Newest first. */
  readonly methods: readonly AuthenticationMethod[];
}
