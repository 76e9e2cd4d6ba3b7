import { type AuditEntry, auditInsert, auditParameters } from '../db/audit-log.ts';
import { nextRefreshTokenId, noInstance, type Queryable, query, type Row } from '../db/query.ts';
import type { ColumnCipher } from '../keys/column-encryption.ts';
import { userColumns, userOf } from '../users/columns.ts';
import { lockOwner } from '../users/store.ts';
import type { User } from '../users/user.ts';
import { refreshCounterColumns, refreshCounterOf } from './refresh-store.ts';
import type { Session } from './sessions.ts';

/** A session to be started, with its first refresh token. */
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
  /** Its first refresh token. */
  readonly refreshToken: string;
  /** Signs its refresh tokens, of which that is the first (counter 0); none of them is kept then. */
  readonly hmacKey?: string;
  readonly at: Date;
}

/** What is kept of a session whose refresh tokens are not kept. */
export interface RefreshCounter {
  /** Signs them; in base64url. */
  readonly hmacKey: string;
  /** Of the one that is good now. */
  readonly counter: number;
}

/** A refresh of a session. */
interface Refresh {
  readonly sessionId: string;
  readonly userAgent: string;
  readonly ip: string;
  readonly at: Date;
}

/** A session with what a refresh needs to know besides its token. */
export interface RefreshableSession {
  readonly session: Session;
  readonly user: User;
  /** Of a session whose refresh tokens are not kept. */
  readonly refreshCounter: RefreshCounter | undefined;
}

/** The successor of a refresh token. */
interface Rotation extends Refresh {
  readonly token: string;
  readonly successor: string;
}

/** More are of a program, and of no use to somebody who looks for a strange one. */
const maxListedSessions = 100;

/** Which sessions of a user end: all, one, or all but one. */
export type LogoutScope = 'global' | 'local' | 'others';

/** A refresh token that is kept. */
export interface StoredRefreshToken {
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** Its successor, if that is kept and good now. */
  readonly activeChild: string | undefined;
  /** Has it a successor that is kept, good or not? */
  readonly hasChild: boolean;
}

/** Sessions and their refresh tokens. */
export interface SessionStore {
  /** Starts a session; the user has signed in at that moment. */
  start(session: NewSession, audit: AuditEntry): Promise<void>;
  /** A user and one of their sessions, in one statement. `session` is absent when it has ended or is another user's. */
  findWithUser(
    userId: string,
    sessionId: string | undefined,
  ): Promise<{ readonly user: User; readonly session: Session | undefined } | undefined>;
  /** A refresh token that is kept, with all that a refresh needs to know, in one statement. */
  findByRefreshToken(
    token: string,
  ): Promise<(RefreshableSession & { readonly token: StoredRefreshToken }) | undefined>;
  /** A session whose refresh tokens are not kept, with all that a refresh needs to know, in one statement. */
  findForRefresh(sessionId: string): Promise<RefreshableSession | undefined>;
  /** Revokes a token and issues its successor. Answers false when somebody else did so first. */
  rotate(rotation: Rotation, audit: AuditEntry): Promise<boolean>;
  /** Raises the counter by one. Answers false when it is not `from` any more. */
  advance(refresh: Refresh & { readonly from: number }, audit: AuditEntry): Promise<boolean>;
  /** Revokes a token that is kept; those that follow are not, and begin with the counter 0. Answers false when somebody else was first. */
  upgrade(
    refresh: Refresh & { readonly token: string; readonly hmacKey: string },
    audit: AuditEntry,
  ): Promise<boolean>;
  /** Notes a refresh that issues no new token. */
  touch(sessionId: string, at: Date): Promise<void>;
  /** Sessions of a user, newest first; no more than {@link maxListedSessions}. */
  list(userId: string): Promise<readonly Session[]>;
  /**
   * Has the user signed in again since? Only sessions of the same tag count; a session without one of `tags` counts as of the first.
   */
  hasNewer(sessionId: string, tags: readonly string[]): Promise<boolean>;
  /** Ends sessions of a user. */
  end(
    scope: LogoutScope,
    ids: { readonly userId: string; readonly sessionId: string | undefined },
    audit: AuditEntry,
  ): Promise<void>;
}

/** Columns of a session, for `… sessions s`; {@link sessionOf} reads them. */
const sessionColumns = `
  s.id as session_id, s.user_id as session_user_id, s.aal as session_aal, s.factor_id as session_factor_id,
  s.created_at as session_created_at, s.refreshed_at at time zone 'utc' as session_refreshed_at,
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
function sessionOf(row: Row): Session | undefined {
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

const text = `
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

/** {@link SessionStore.start} */
export function startSession(sql: Queryable, cipher: ColumnCipher): SessionStore['start'] {
  return async (session, audit) => {
    await query(sql, text, [
      session.id,
      session.userId,
      session.aal,
      session.method,
      session.userAgent,
      session.ip,
      session.refreshToken,
      session.at,
      session.tag,
      session.hmacKey === undefined ? null : cipher.seal(session.id, session.hmacKey),
      ...auditParameters(audit),
    ]);
  };
}

// A prepared statement keeps a plan made when tables were small, where all indexes look alike. These statements therefore name no
// column that would let it go through all sessions of a user, or all tokens of a session: no index serves `is not distinct from`.
const withUser = `select ${userColumns}, ${sessionColumns}
  from users u left join sessions s on s.id = $2::uuid and s.user_id is not distinct from u.id
  where u.id = $1 and u.deleted_at is null`;

const byRefreshToken = `select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns},
    t.revoked as token_revoked, t.updated_at as token_updated_at,
    case when t.revoked then (
      select (array_agg(c.token order by c.id desc))[1] from refresh_tokens c where c.parent = t.token and c.revoked is not true
    ) end as token_active_child,
    t.revoked and exists (select 1 from refresh_tokens c where c.parent = t.token) as token_has_child
  from refresh_tokens t join sessions s on s.id = t.session_id join users u on u.id = s.user_id
  where t.token = $1 and u.deleted_at is null`;

const forRefresh = `select ${userColumns}, ${sessionColumns}, ${refreshCounterColumns}
  from sessions s join users u on u.id = s.user_id
  where s.id = $1 and u.deleted_at is null`;

interface TokenRow {
  readonly token_revoked: boolean | null;
  readonly token_updated_at: Date;
  readonly token_active_child: string | null;
  readonly token_has_child: boolean | null;
}

/** The `find…` functions of {@link SessionStore}. */
export function findSession(
  sql: Queryable,
  cipher: ColumnCipher,
): Pick<SessionStore, 'findWithUser' | 'findByRefreshToken' | 'findForRefresh'> {
  return {
    async findWithUser(userId, sessionId) {
      const [row] = await query(sql, withUser, [userId, sessionId ?? null]);
      return row && { user: userOf(row), session: sessionOf(row) };
    },
    async findByRefreshToken(token) {
      const [row] = await query(sql, byRefreshToken, [token]);
      const found = row && refreshableOf(row, cipher);
      return row && found && { ...found, token: tokenOf(row) };
    },
    async findForRefresh(sessionId) {
      const [row] = await query(sql, forRefresh, [sessionId]);
      return row && refreshableOf(row, cipher);
    },
  };
}

function refreshableOf(row: Row, cipher: ColumnCipher): RefreshableSession | undefined {
  const session = sessionOf(row);
  if (session === undefined) return undefined;
  const refreshCounter = refreshCounterOf(row, { sessionId: session.id, cipher });
  return { session, user: userOf(row), refreshCounter };
}

function tokenOf(row: Row): StoredRefreshToken {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as TokenRow;
  return {
    revoked: r.token_revoked === true,
    updatedAt: r.token_updated_at,
    activeChild: r.token_active_child ?? undefined,
    hasChild: r.token_has_child === true,
  };
}

const list = `select ${sessionColumns} from sessions s where s.user_id = $1
  order by s.created_at desc, s.id limit ${maxListedSessions}`;

function group(session: string): string {
  return `case when ${session}.tag = any($2::text[]) then ${session}.tag else coalesce(($2::text[])[1], '') end`;
}

// Ids decide between sessions of one moment: one of them has to go.
const hasNewer = `select 1 from sessions mine join sessions other on other.user_id = mine.user_id
  where mine.id = $1 and (other.created_at, other.id) > (mine.created_at, mine.id)
    and ${group('other')} = ${group('mine')}
  limit 1`;

/** The functions of {@link SessionStore} that look at several sessions of a user. */
export function listSessions(sql: Queryable): Pick<SessionStore, 'list' | 'hasNewer'> {
  return {
    async list(userId) {
      const rows = await query(sql, list, [userId]);
      return rows.flatMap((row) => sessionOf(row) ?? []);
    },
    async hasNewer(sessionId, tags) {
      return (await query(sql, hasNewer, [sessionId, tags])).length > 0;
    },
  };
}

// Refresh tokens and proofs go with their session.
const whichOf: Readonly<Record<LogoutScope, string>> = {
  global: '$2::uuid is null or true',
  local: 'id = $2',
  others: 'id is distinct from $2',
};

function textOf(which: string): string {
  return `with owner as (${lockOwner('$1')}), ended as (
      delete from sessions where user_id = (select id from owner) and (${which})
    ) ${auditInsert(3)}`;
}

const texts: Readonly<Record<LogoutScope, string>> = {
  global: textOf(whichOf.global),
  local: textOf(whichOf.local),
  others: textOf(whichOf.others),
};

/** {@link SessionStore.end} */
export function endSessions(sql: Queryable): SessionStore['end'] {
  return async (scope, { userId, sessionId }, audit) => {
    await query(sql, texts[scope], [userId, sessionId ?? null, ...auditParameters(audit)]);
  };
}
