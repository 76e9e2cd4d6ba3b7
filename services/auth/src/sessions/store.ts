import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { AuthorizationDetail } from '../config/oauth-permissions.ts';
import { Batch, type Queryable } from '../db/connection.ts';
import { batchedInput, column, lockOwner, nextRefreshTokenId, noInstance } from '../db/fragments.ts';
import { jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { type Fragment, fragment, parameters, raw, type StatementRow, statement } from '../db/statement.ts';
import { type ColumnCipher, toStoredForm } from '../keys/secrets.ts';
import { toUser, type User, userColumns, userRow } from '../users/user.ts';

/** A session with its first refresh token. */
interface SessionStart {
  readonly id: string;
  readonly userAgent: string;
  readonly ip: string;
  readonly refreshToken: string;
  /**
   * Signs the refresh tokens of version 2, which are not stored. `refreshToken` is the one with
   * counter 0.
   */
  readonly hmacKey?: string;
  readonly at: Date;
}

interface NewSession extends SessionStart {
  readonly userId: string;
  readonly aal: Session['aal'];
  /** Value of the claim `amr`. */
  readonly method: string;
  /** Empty for none. */
  readonly tag: string;
  readonly client?: SessionClient | undefined;
}

/** Which sessions of a user end: all, one, or all but one. */
export type LogoutScope = 'global' | 'local' | 'others';

/** `with_clients`: a session, and those of OAuth clients that were approved with it. */
export type SignOutScope = LogoutScope | 'with_clients';

/** A user has few sessions; thousands are made by a program. */
const maxListedSessions = 100;

/**
 * Columns of a session, for `… sessions s`: {@link sessionRow}. The client is read from the row as
 * JSON: schemas of GoTrue before 2026 lack the columns, and get no more of them.
 */
export const sessionColumns = raw(`
  s.id as session_id, s.user_id as session_user_id, s.aal as session_aal, s.factor_id as session_factor_id,
  s.created_at as session_created_at,
  (select max(used_at) from browser_sessions where session_id = s.id) as session_used_at, s.refreshed_at at time zone 'utc' as session_refreshed_at,
  s.not_after as session_not_after, s.user_agent as session_user_agent, host(s.ip) as session_ip, s.tag as session_tag,
  (select json_build_object('id', r.s ->> 'oauth_client_id',
      'identifier', coalesce(c.document_url, r.s ->> 'oauth_client_id'), 'tokenType', coalesce(c.metadata ->> 'access_token_typ', 'JWT'),
      'scope', coalesce(r.s ->> 'scopes', ''),
      'resource', (select resource from session_resources where session_id = s.id),
      'details', coalesce((select details from session_authorization_details where session_id = s.id), '[]'),
      'thumbprint', (select thumbprint from session_keys where session_id = s.id))
    from (select to_jsonb(s) as s) r
      left join oauth_client_settings c on c.client_id = (r.s ->> 'oauth_client_id')::uuid
    where r.s ->> 'oauth_client_id' is not null) as session_client,
  (select json_agg(json_build_object('method', a.authentication_method, 'at', a.updated_at) order by a.updated_at desc, a.id)
    from mfa_amr_claims a where a.session_id = s.id) as session_methods,
  (select json_build_object('id', o.id, 'slug', o.slug, 'role', m.role)
    from session_organizations a join organization_members m using (organization_id, user_id)
      join organizations o on o.id = m.organization_id
    where a.session_id = s.id and a.user_id = s.user_id) as session_organization`);

export const sessionRow = {
  session_id: uuid,
  session_user_id: uuid,
  session_aal: text.as<Session['aal']>().orNull,
  session_factor_id: uuid.orNull,
  session_created_at: timestamptz.orNull,
  session_refreshed_at: timestamptz.orNull,
  session_used_at: timestamptz.orNull,
  session_not_after: timestamptz.orNull,
  session_user_agent: text.orNull,
  session_ip: text.orNull,
  session_tag: text.orNull,
  session_client: jsonOf<SessionClient>().orNull,
  session_methods: jsonOf<readonly { readonly method: string; readonly at: string }[]>().orNull,
  session_organization: jsonOf<ActiveOrganization>().orNull,
};

/** Reads {@link sessionColumns}. */
export function toSession(r: RowOf<typeof sessionRow>): Session {
  return {
    id: r.session_id,
    userId: r.session_user_id,
    aal: r.session_aal ?? 'aal1',
    factorId: r.session_factor_id ?? undefined,
    createdAt: r.session_created_at ?? new Date(0),
    refreshedAt: r.session_refreshed_at ?? undefined,
    usedAt: r.session_used_at ?? undefined,
    notAfter: r.session_not_after ?? undefined,
    userAgent: r.session_user_agent ?? '',
    ip: r.session_ip ?? '',
    tag: r.session_tag ?? '',
    methods: r.session_methods?.map(({ method, at }) => ({ method, at: new Date(at) })) ?? [],
    organization: r.session_organization ?? undefined,
    client: r.session_client ?? undefined,
  };
}

/** The ids of an access token. */
interface CallerKey {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

const p = {
  ...parameters(uuid, 'id', 'sourceId', 'userId', 'clientId'),
  ...parameters(uuid.orNull, 'sessionId'),
  ...parameters(text, 'aal', 'method', 'userAgent', 'ip', 'refreshToken', 'tag', 'scopes'),
  ...parameters(timestamptz, 'at'),
  ...parameters(text.orNull, 'hmacKey', 'resource', 'thumbprint'),
  ...parameters(text.list, 'tags'),
  ...parameters(jsonOf<SessionClient['details']>(), 'details'),
};

/** Starts a session, with further columns. */
function startWith<V, W>(columns: Fragment<unknown>, values: Fragment<V>, more: Fragment<W>) {
  return statement({})`
  with new_session as (
    insert into sessions (id, user_id, aal, user_agent, ip, created_at, updated_at, tag, refresh_token_hmac_key, refresh_token_counter${columns})
    values (${p.id}, ${p.userId}, ${p.aal}::aal_level, ${p.userAgent}, nullif(${p.ip}, '')::inet, ${p.at}, ${p.at},
      nullif(${p.tag}, ''), ${p.hmacKey}::text, case when ${p.hmacKey} is not null then 0 end${values})
  ), new_method as (
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    values (gen_random_uuid(), ${p.id}, ${p.method}, ${p.at}, ${p.at})
  ), new_token as (
    insert into refresh_tokens (id, token, user_id, session_id, revoked, parent, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, ${p.refreshToken}, ${p.userId}::uuid::text, ${p.id}, false, '', ${p.at}, ${p.at},
      ${noInstance} where ${p.hmacKey} is null
  ), signed_in as (
    update users set last_sign_in_at = ${p.at}, updated_at = ${p.at} where id = ${p.userId}
  )${more}
  ${auditInsert()}`;
}

const start = startWith(raw(''), raw(''), raw(''));
// Schemas of GoTrue before 2026 have no such columns, and no OAuth server.
const startForClient = startWith(
  raw(', oauth_client_id, scopes'),
  fragment`, ${p.clientId}, ${p.scopes}`,
  fragment`, new_resource as (
    insert into session_resources (session_id, resource)
    select ${p.id}, ${p.resource} where ${p.resource}::text is not null
  ), new_key as (
    insert into session_keys (session_id, thumbprint)
    select ${p.id}, ${p.thumbprint} where ${p.thumbprint}::text is not null
  ), new_details as (
    insert into session_authorization_details (session_id, details)
    select ${p.id}, ${p.details} where ${p.details}::jsonb <> '[]'
  )`,
);

// The times of the authentication are those of the source, so that neither the end of the session
// nor a check of a recent sign-in is later than there.
const derive = statement({})`
  with source as (
    select * from sessions where id = ${p.sourceId} for key share
  ), new_session as (
    insert into sessions (id, user_id, aal, factor_id, user_agent, ip, created_at, updated_at, refreshed_at, not_after, tag,
      refresh_token_hmac_key, refresh_token_counter)
    select ${p.id}, user_id, aal, factor_id, ${p.userAgent}, nullif(${p.ip}, '')::inet, created_at, ${p.at},
      ${p.at}::timestamptz at time zone 'utc', not_after, tag, ${p.hmacKey}::text, case when ${p.hmacKey} is not null then 0 end
    from source
  ), new_methods as (
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    select gen_random_uuid(), ${p.id}, authentication_method, created_at, updated_at
    from mfa_amr_claims where session_id = (select id from source)
  ), new_organization as (
    insert into session_organizations (session_id, user_id, organization_id)
    select ${p.id}, user_id, organization_id from session_organizations where session_id = (select id from source)
  ), new_token as (
    insert into refresh_tokens (id, token, user_id, session_id, revoked, parent, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, ${p.refreshToken}, user_id::text, ${p.id}, false, '', ${p.at}, ${p.at}, ${noInstance}
    from source where ${p.hmacKey} is null
  ), audit as (${auditInsert('source')})
  select id from source`;

// See `batchedInput` for `offset 0`. No index serves `is not distinct from`, so no plan scans all
// sessions of a user.
const findWithUser = statement({}, userRow, sessionRow)`select ${userColumns}, ${sessionColumns}
  from ${batchedInput<CallerKey>({
    user_id: column(uuid, ({ userId }) => userId),
    session_id: column(uuid.orNull, ({ sessionId }) => sessionId ?? null),
  })}
  left join lateral (select * from users where id = i.user_id and deleted_at is null offset 0) u on true
  left join lateral (
    select * from sessions where id = i.session_id and user_id is not distinct from i.user_id offset 0
  ) s on true
  order by i.position`;

const list = statement(sessionRow)`select ${sessionColumns} from sessions s where s.user_id = ${p.userId}
  order by s.created_at desc, s.id limit ${raw(maxListedSessions)}`;

function tagGroup(session: 'mine' | 'other') {
  const tag = raw(`${session}.tag`);
  return fragment`case when ${tag} = any(${p.tags}::text[]) then ${tag} else coalesce((${p.tags}::text[])[1], '') end`;
}

// Ids break the tie between sessions that started in the same instant.
/** A condition for `sessions mine` and `sessions other` of the same user and kind. */
export const isNewer = fragment`(other.created_at, other.id) > (mine.created_at, mine.id)
    and ${tagGroup('other')} = ${tagGroup('mine')}
    and to_jsonb(mine) ->> 'oauth_client_id' is null and to_jsonb(other) ->> 'oauth_client_id' is null`;

// Sessions of OAuth clients neither end those of the user nor are ended by them.
const hasNewer = statement({})`select 1 from sessions mine join sessions other on other.user_id = mine.user_id
  where mine.id = ${p.sessionId} and ${isNewer} limit 1`;

// Refresh tokens and `amr` claims are deleted in cascade.
function endWhere<V>(condition: Fragment<V>) {
  return statement({})`with owner as (${lockOwner(p.userId)}), ended as (
      delete from sessions where user_id = (select id from owner) and (${condition})
    ) ${auditInsert()}`;
}

// Tokens stay until the cleanup, without the session: a later use of any of them is reuse, too.
// Locks the session before its tokens, as refreshes do.
const endReused = statement({})`with owner as (${lockOwner(p.userId)}), reused as materialized (
    select id from sessions where id = ${p.sessionId} and user_id = (select id from owner) for update
  ), kept as (
    update refresh_tokens set revoked = true, session_id = null where session_id = (select id from reused)
  ), ended as (
    delete from sessions where id = (select id from reused)
  ) ${auditInsert('reused')}`;

// Users give clients with `offline_access` access for the time after the sign-out.
const isOfClientOfSession = fragment`
  id in (select session_id from session_authentications where approved_by = ${p.sessionId})
  and not 'offline_access' = any(string_to_array(coalesce(to_jsonb(sessions) ->> 'scopes', ''), ' '))`;

const end = {
  global: endWhere(fragment`${p.sessionId}::uuid is null or true`),
  local: endWhere(fragment`id = ${p.sessionId}`),
  with_clients: endWhere(fragment`id = ${p.sessionId} or ${isOfClientOfSession}`),
  others: endWhere(fragment`id is distinct from ${p.sessionId}`),
  reused: endReused,
};

const confirm = statement({})`
  insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
  select gen_random_uuid(), id, ${p.method}, ${p.at}, ${p.at} from sessions where id = ${p.sessionId}
  on conflict (session_id, authentication_method) do update set updated_at = excluded.updated_at`;

/** Connections of the pool that lookups of callers may use. */
const maxConcurrentLookups = 4;

/** Sessions, except for what a refresh does (see `RefreshTokenStore`). */
export class SessionStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;
  readonly #onChange: ((userId: string) => void) | undefined;
  readonly #callers: Batch<CallerKey, StatementRow<typeof findWithUser>>;

  constructor(sql: Queryable, cipher: ColumnCipher, onChange?: (userId: string) => void) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#onChange = onChange;
    this.#callers = new Batch({
      maxConcurrent: maxConcurrentLookups,
      run: (items) => findWithUser.run(sql, { items }),
    });
  }

  /** Starts a session and updates the time of the user's last sign-in. */
  async start(session: NewSession, audit: AuditEntry): Promise<void> {
    const { client } = session;
    const values = { ...session, ...this.#toStored(session), audit };
    if (client === undefined) await start.run(this.#sql, values);
    else
      await startForClient.run(this.#sql, {
        ...values,
        clientId: client.id,
        scopes: client.scope,
        resource: client.resource,
        thumbprint: client.thumbprint,
        details: client.details,
      });
  }

  /**
   * Starts a session with the authentication of another one. Returns false if that one has ended.
   */
  async derive(session: SessionStart & { readonly sourceId: string }, audit: AuditEntry): Promise<boolean> {
    return derive.matches(this.#sql, { ...session, ...this.#toStored(session), audit });
  }

  #toStored({ id, refreshToken, hmacKey }: SessionStart) {
    return {
      refreshToken: toStoredForm(refreshToken),
      hmacKey: hmacKey && this.#cipher.encrypt(id, hmacKey),
    };
  }

  /**
   * A user and one of their sessions; `session` is absent when it has ended or is another user's.
   */
  async findWithUser(
    userId: string,
    sessionId: string | undefined,
  ): Promise<{ readonly user: User; readonly session: Session | undefined } | undefined> {
    const row = await this.#callers.add({ userId, sessionId });
    if (row.id === null) return undefined;
    return { user: toUser(row), session: row.session_id === null ? undefined : toSession(row) };
  }

  /** The latest {@link maxListedSessions} sessions of a user, newest first. */
  async list(userId: string): Promise<readonly Session[]> {
    return (await list.run(this.#sql, { userId })).map(toSession);
  }

  /**
   * Whether the user has started a later session with the same tag. A session whose tag is not in
   * `tags` belongs to the first of them.
   */
  async hasNewer(sessionId: string, tags: readonly string[]): Promise<boolean> {
    return hasNewer.matches(this.#sql, { sessionId, tags });
  }

  /** Records that the user has authenticated again. `method` is a value of the claim `amr`. */
  async confirm(sessionId: string, method: string, at: Date): Promise<void> {
    await confirm.run(this.#sql, { sessionId, method, at });
  }

  /** `reused`: one session, whose refresh tokens have been used twice. */
  async end(
    scope: SignOutScope | 'reused',
    { userId, sessionId }: { readonly userId: string; readonly sessionId: string | undefined },
    audit: AuditEntry,
  ): Promise<void> {
    await end[scope].run(this.#sql, { userId, sessionId, audit });
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

/** The organization for which a member acts. */
export interface ActiveOrganization {
  readonly id: string;
  readonly slug: string;
  /** The role of the member. */
  readonly role: string;
}

/** The OAuth client that a user has given access. */
export interface SessionClient {
  readonly id: string;
  /** Its `client_id`: the id, or the URL of its metadata document. */
  readonly identifier: string;
  /** Separated by spaces. */
  readonly scope: string;
  /** The audience of its access tokens; null for that of the user. */
  readonly resource: string | null;
  readonly details: readonly AuthorizationDetail[];
  /** The header `typ` of its access tokens. */
  readonly tokenType: 'at+jwt' | 'JWT';
  /** The key that its refresh tokens are bound to, by its thumbprint; null for none. */
  readonly thumbprint: string | null;
}

export interface Session {
  readonly id: string;
  readonly userId: string;
  readonly aal: AssuranceLevel;
  readonly factorId: string | undefined;
  readonly createdAt: Date;
  /** Time of the last refresh; absent before the first. */
  readonly refreshedAt: Date | undefined;
  /** Time of the last request to an application of a browser of the session, to a minute. */
  readonly usedAt?: Date | undefined;
  readonly notAfter: Date | undefined;
  readonly userAgent: string;
  readonly ip: string;
  /** Kind of session, as named by the client; empty for none. */
  readonly tag: string;
  /** Newest first. */
  readonly methods: readonly AuthenticationMethod[];
  readonly organization: ActiveOrganization | undefined;
  /** Undefined for a session that the user started. */
  readonly client: SessionClient | undefined;
}
