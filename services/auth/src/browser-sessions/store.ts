import type { JsonObject } from '@tollgate/kit/json';
import type { Queryable } from '../db/connection.ts';
import { CredentialCache } from '../db/credential-cache.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { boolean, jsonOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import type { StateCacheOptions } from '../db/state-reads.ts';
import { parameters, raw, type StatementRow, statement } from '../db/statement.ts';
import type { Use } from '../db/usage.ts';
import { type AssuranceLevel, isNewer } from '../sessions/store.ts';
import { digestOf } from './cookies.ts';

/** A code that a browser exchanges for the cookie of a host. */
interface NewCode {
  readonly id: string;
  readonly sessionId: string;
  readonly userId: string;
  readonly host: string;
  /** Digest of the secret of the browser. */
  readonly binding: string;
  /** A digest, as that of the cookie. */
  readonly code: string;
  readonly claims: JsonObject;
  readonly expiresAt: Date;
  readonly at: Date;
}

interface Exchange extends Pick<NewCode, 'code' | 'host' | 'binding' | 'at'> {
  /** Digest of the cookie. */
  readonly cookie: string;
  /** The host that gets the cookie, or a domain that begins with a dot. */
  readonly scope: string;
}

/** The session that a cookie stands for. */
export interface BrowserSessionState {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly orgId: string | undefined;
  readonly host: string;
  /** The claims of an access token. One object for as long as the state is cached. */
  readonly claims: JsonObject;
  readonly aal: AssuranceLevel;
  readonly createdAt: Date;
  readonly hasFactor: boolean;
  /** Whether the user has signed in again, with a session of the same kind. */
  readonly hasNewer: boolean;
}

/** A host has a few tabs that sign in at the same time, and one cookie. */
const maxPerHost = 10;

const p = {
  ...parameters(uuid, 'id', 'sessionId', 'userId'),
  ...parameters(text, 'host', 'scope', 'binding', 'code', 'cookie'),
  ...parameters(jsonOf<JsonObject>(), 'claims'),
  ...parameters(timestamptz, 'expiresAt', 'at'),
};

const insert = statement({ id: uuid })`
  with older as (
    delete from browser_sessions where id in (
      select id from browser_sessions where session_id = ${p.sessionId} and host = ${p.host}
      order by created_at desc, id offset ${raw(maxPerHost - 1)}
    )
  )
  insert into browser_sessions (id, session_id, user_id, host, binding, code, claims, code_expires_at, created_at, used_at)
  select ${p.id}, id, user_id, ${p.host}, ${p.binding}, ${p.code}, ${p.claims}, ${p.expiresAt}, ${p.at}, ${p.at}
  from sessions where id = ${p.sessionId} and user_id = ${p.userId}
  returning id`;

// A code that another browser or host presents is spent, too.
const exchange = statement({ is_valid: boolean })`
  update browser_sessions set code = null, used_at = ${p.at}, host = ${p.scope}, digest = case
    when host = ${p.host} and binding = ${p.binding} and code_expires_at > ${p.at} then ${p.cookie} end
  where code = ${p.code} returning digest is not null as is_valid`;

const state = {
  id: uuid,
  user_id: uuid,
  session_id: uuid,
  host: text,
  claims: jsonOf<JsonObject>(),
  aal: text.as<AssuranceLevel>().orNull,
  created_at: timestamptz,
  active_at: timestamptz,
  org_id: uuid.orNull,
  has_factor: boolean,
  has_newer: boolean,
};

// See `batchedInput` for `offset 0`.
const findStates = statement({}, state)`
  select b.id, b.user_id, b.session_id, b.host, b.claims, s.aal, coalesce(s.created_at, b.created_at) as created_at,
    greatest(s.used_at, coalesce(s.refreshed_at at time zone 'utc', b.created_at)) as active_at, a.organization_id as org_id,
    s.has_factor, s.has_newer
  from ${batchedInput<string>({ digest: column(text, (digest) => digest) })}
  left join lateral (select * from browser_sessions where digest = i.digest offset 0) b on true
  left join lateral (
    select aal, created_at, refreshed_at,
      (select max(used_at) from browser_sessions where session_id = mine.id) as used_at,
      exists (select 1 from mfa_factors where user_id = mine.user_id and status = 'verified') as has_factor,
      exists (select 1 from sessions other where other.user_id = mine.user_id and ${isNewer}) as has_newer
    from sessions mine where id = b.session_id offset 0
  ) s on true
  left join lateral (select * from session_organizations where session_id = b.session_id offset 0) a on true
  order by i.position`;

// Other replicas may lock the same rows.
const recordUse = statement({})`
  with used as (
    select b.id, i.at from browser_sessions b join ${batchedInput<Use>({
      id: column(uuid, ({ id }) => id),
      at: column(timestamptz, ({ at }) => at),
    })} on b.id = i.id
    where b.used_at < i.at for no key update of b skip locked
  )
  update browser_sessions b set used_at = used.at from used where b.id = used.id`;

/** Sessions at hosts of applications. Each belongs to a session of the user, and ends with it. */
export class BrowserSessionStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Returns false if the session has ended. */
  async insert(code: NewCode): Promise<boolean> {
    return insert.matches(this.#sql, code);
  }

  /** Spends a code. Returns whether its host has the cookie now. */
  async exchange(request: Exchange): Promise<boolean> {
    return (await exchange.first(this.#sql, request))?.is_valid === true;
  }

  /**
   * Reads states in the order of the digests with one statement.
   *
   * @param tags kinds of sessions
   */
  async findMany(
    digests: readonly string[],
    tags: readonly string[],
  ): Promise<readonly (BrowserSessionState | undefined)[]> {
    return (await findStates.run(this.#sql, { items: digests, tags })).map(toState);
  }

  /** Records uses of sessions. Others may have recorded later ones. */
  async recordUse(uses: readonly Use[]): Promise<void> {
    await recordUse.run(this.#sql, { items: uses });
  }
}

function toState(r: StatementRow<typeof findStates>): BrowserSessionState | undefined {
  if (r.id === null) return undefined;
  const { id, user_id: userId, session_id: sessionId, host, created_at: createdAt } = r;
  const aal = r.aal ?? 'aal1';
  const iat = Math.floor((r.active_at?.getTime() ?? 0) / 1000);
  const claims = { ...r.claims, sub: userId, session_id: sessionId, aal, iat };
  return {
    ...{ id, userId, sessionId, host, orgId: r.org_id ?? undefined, claims, aal, createdAt },
    ...{ hasFactor: r.has_factor, hasNewer: r.has_newer },
  };
}

/** Caches which sessions cookies of browsers stand for. */
export class BrowserSessionCache extends CredentialCache<BrowserSessionState> {
  constructor({
    store,
    tags,
    ...options
  }: StateCacheOptions<Pick<BrowserSessionStore, 'findMany'>> & { readonly tags: readonly string[] }) {
    super({
      ...options,
      store: { findMany: (digests) => store.findMany(digests, tags) },
      digest: digestOf,
      idsOf: ({ userId }) => [userId],
    });
  }
}
