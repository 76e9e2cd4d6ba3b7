import type { JsonObject } from '@tollgate/kit/json';
import type { Queryable } from '../db/connection.ts';
import { CredentialCache } from '../db/credential-cache.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { boolean, jsonOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import type { StateCacheOptions } from '../db/state-reads.ts';
import { parameters, raw, type StatementRow, statement } from '../db/statement.ts';
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
}

/** A host has a few tabs that sign in at the same time, and one cookie. */
const maxPerHost = 10;

const p = {
  ...parameters(uuid, 'id', 'sessionId', 'userId'),
  ...parameters(text, 'host', 'binding', 'code', 'cookie'),
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
  update browser_sessions set code = null, used_at = ${p.at}, digest = case
    when host = ${p.host} and binding = ${p.binding} and code_expires_at > ${p.at} then ${p.cookie} end
  where code = ${p.code} returning digest is not null as is_valid`;

const state = {
  id: uuid,
  user_id: uuid,
  session_id: uuid,
  host: text,
  claims: jsonOf<JsonObject>(),
  aal: text.orNull,
  active_at: timestamptz,
  org_id: uuid.orNull,
};

// See `batchedInput` for `offset 0`.
const findStates = statement({}, state)`
  select b.id, b.user_id, b.session_id, b.host, b.claims, s.aal, a.organization_id as org_id,
    greatest(b.used_at, coalesce(s.refreshed_at at time zone 'utc', s.created_at)) as active_at
  from ${batchedInput<string>({ digest: column(text, (digest) => digest) })}
  left join lateral (select * from browser_sessions where digest = i.digest offset 0) b on true
  left join lateral (select * from sessions where id = b.session_id offset 0) s on true
  left join lateral (select * from session_organizations where session_id = b.session_id offset 0) a on true
  order by i.position`;

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

  /** Reads states in the order of the digests with one statement. */
  async findMany(digests: readonly string[]): Promise<readonly (BrowserSessionState | undefined)[]> {
    return (await findStates.run(this.#sql, { items: digests })).map(toState);
  }
}

function toState(r: StatementRow<typeof findStates>): BrowserSessionState | undefined {
  if (r.id === null) return undefined;
  const { id, user_id: userId, session_id: sessionId, host } = r;
  const iat = Math.floor((r.active_at?.getTime() ?? 0) / 1000);
  const claims = { ...r.claims, sub: userId, session_id: sessionId, aal: r.aal ?? 'aal1', iat };
  return { id, userId, sessionId, host, orgId: r.org_id ?? undefined, claims };
}

/** Caches which sessions cookies of browsers stand for. */
export class BrowserSessionCache extends CredentialCache<BrowserSessionState> {
  constructor(options: StateCacheOptions<Pick<BrowserSessionStore, 'findMany'>>) {
    super({ ...options, digest: digestOf, idsOf: ({ userId }) => [userId] });
  }
}
