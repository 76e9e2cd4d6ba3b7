import { createHash } from 'node:crypto';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import { lockOwner } from '../db/fragments.ts';
import { type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { columnNames, fragment, parameters, statement } from '../db/statement.ts';
import type { ChallengeMethod } from '../flows/pkce.ts';
import { toStoredForm } from '../keys/secrets.ts';

/** Columns of GoTrue. */
const authorizationRow = {
  /** Also the id of the session that the code is exchanged for. */
  id: uuid,
  /** Identifies the request in URLs. */
  authorization_id: text,
  client_id: uuid,
  /** Null until a user opens the request. */
  user_id: uuid.orNull,
  redirect_uri: text,
  /** Separated by spaces. */
  scope: text,
  state: text.orNull,
  resource: text.orNull,
  code_challenge: text.orNull,
  code_challenge_method: text.as<ChallengeMethod>().orNull,
  status: text.as<'pending' | 'approved' | 'denied' | 'expired'>(),
  created_at: timestamptz,
  /** The end of the request, and after the approval that of the code. */
  expires_at: timestamptz,
  approved_at: timestamptz.orNull,
  nonce: text.orNull,
};

/** A request of a client for access to the resources of a user. */
export type Authorization = RowOf<typeof authorizationRow>;

export type NewAuthorization = Pick<
  Authorization,
  | 'id'
  | 'authorization_id'
  | 'client_id'
  | 'redirect_uri'
  | 'scope'
  | 'state'
  | 'resource'
  | 'code_challenge'
  | 'code_challenge_method'
  | 'created_at'
  | 'expires_at'
  | 'nonce'
>;

const grantRow = {
  client_id: uuid,
  client_name: text.orNull,
  client_uri: text.orNull,
  logo_uri: text.orNull,
  /** Separated by spaces. */
  scopes: text,
  granted_at: timestamptz,
};

/** The consent of a user to a client. */
export type Grant = RowOf<typeof grantRow>;

const p = {
  ...parameters(uuid, 'id', 'userId', 'clientId'),
  ...parameters(text, 'authorizationId', 'code', 'spentCode', 'scopes', 'redirectUri', 'scope'),
  ...parameters(text.orNull, 'state', 'resource', 'challenge', 'method', 'nonce'),
  ...parameters(timestamptz, 'at', 'expiresAt'),
};

const columns = columnNames(authorizationRow);

const insert = statement({})`
  insert into oauth_authorizations (id, authorization_id, client_id, redirect_uri, scope, state, resource, code_challenge,
    code_challenge_method, created_at, expires_at, nonce)
  values (${p.id}, ${p.authorizationId}, ${p.clientId}, ${p.redirectUri}, ${p.scope}, ${p.state}, ${p.resource}, ${p.challenge},
    ${p.method}::code_challenge_method, ${p.at}, ${p.expiresAt}, ${p.nonce})`;

const find = statement(authorizationRow)`
  select ${columns} from oauth_authorizations where authorization_id = ${p.authorizationId}`;

const isPending = fragment`authorization_id = ${p.authorizationId} and status = 'pending' and expires_at > ${p.at}`;

const claim = statement({})`
  update oauth_authorizations set user_id = ${p.userId}
  where ${isPending} and (user_id is null or user_id = ${p.userId}) returning id`;

// A code replaces the request: it has a lifetime of its own. The consent is extended.
const approve = statement({})`
  with owner as (${lockOwner(p.userId)}), approved as (
    update oauth_authorizations
    set status = 'approved', approved_at = ${p.at}, authorization_code = ${p.code}, expires_at = ${p.expiresAt}
    where ${isPending} and user_id = (select id from owner) returning user_id, client_id
  ), consent as (
    insert into oauth_consents (id, user_id, client_id, scopes, granted_at)
    select gen_random_uuid(), user_id, client_id, ${p.scopes}, ${p.at} from approved
    on conflict (user_id, client_id) do update
    set scopes = excluded.scopes, granted_at = excluded.granted_at, revoked_at = null
  ), audit as (${auditInsert('approved')})
  select 1 from approved`;

const deny = statement({})`
  with denied as (
    update oauth_authorizations set status = 'denied' where ${isPending} and user_id = ${p.userId} returning id
  ), audit as (${auditInsert('denied')})
  select 1 from denied`;

const findByCode = statement(authorizationRow)`
  select ${columns} from oauth_authorizations where authorization_code in (${p.code}, ${p.spentCode})`;

const spend = statement({})`
  update oauth_authorizations set authorization_code = ${p.spentCode}, status = 'expired'
  where id = ${p.id} and authorization_code = ${p.code} and status = 'approved' returning id`;

const findConsent = statement({ scopes: text })`
  select scopes from oauth_consents
  where user_id = ${p.userId} and client_id = ${p.clientId} and revoked_at is null`;

const listGrants = statement(grantRow)`
  select c.id as client_id, c.client_name, c.client_uri, c.logo_uri, g.scopes, g.granted_at
  from oauth_consents g join oauth_clients c on c.id = g.client_id
  where g.user_id = ${p.userId} and g.revoked_at is null and c.deleted_at is null
  order by g.granted_at desc, c.id`;

// Codes that were not exchanged yet end, too.
const revokeGrant = statement({})`
  with owner as (${lockOwner(p.userId)}), revoked as (
    update oauth_consents set revoked_at = greatest(${p.at}, granted_at)
    where user_id = (select id from owner) and client_id = ${p.clientId} and revoked_at is null returning id
  ), ended as (
    delete from sessions where user_id = ${p.userId} and oauth_client_id = ${p.clientId} and exists (select 1 from revoked)
  ), withdrawn as (
    delete from oauth_authorizations
    where user_id = ${p.userId} and client_id = ${p.clientId} and exists (select 1 from revoked)
  ), audit as (${auditInsert('revoked')})
  select 1 from revoked`;

interface Decision {
  readonly authorizationId: string;
  readonly userId: string;
  readonly at: Date;
  readonly audit: AuditEntry;
}

/** Requests of clients for access, and the consents of users. */
export class AuthorizationStore {
  readonly #sql: Queryable;
  readonly #onChange: ((userId: string) => void) | undefined;

  constructor(sql: Queryable, onChange?: (userId: string) => void) {
    this.#sql = sql;
    this.#onChange = onChange;
  }

  async insert(authorization: NewAuthorization): Promise<void> {
    const { authorization_id, client_id, redirect_uri, code_challenge, code_challenge_method } =
      authorization;
    await insert.run(this.#sql, {
      ...authorization,
      authorizationId: authorization_id,
      clientId: client_id,
      redirectUri: redirect_uri,
      challenge: code_challenge,
      method: code_challenge_method,
      at: authorization.created_at,
      expiresAt: authorization.expires_at,
    });
  }

  async find(authorizationId: string): Promise<Authorization | undefined> {
    return find.first(this.#sql, { authorizationId });
  }

  /** Binds a pending request to the user. Returns false if it is another user's, or has ended. */
  async claim(request: Omit<Decision, 'audit'>): Promise<boolean> {
    return claim.matches(this.#sql, request);
  }

  /** Stores the code, and the consent. Returns true for one of concurrent decisions. */
  async approve(
    decision: Decision & { readonly code: string; readonly expiresAt: Date; readonly scopes: string },
  ): Promise<boolean> {
    return approve.matches(this.#sql, { ...decision, code: toStoredForm(decision.code) });
  }

  async deny(decision: Decision): Promise<boolean> {
    return deny.matches(this.#sql, decision);
  }

  /** `isSpent`: the code was exchanged before. */
  async findByCode(code: string): Promise<(Authorization & { readonly isSpent: boolean }) | undefined> {
    const row = await findByCode.first(this.#sql, codeForms(code));
    return row && { ...row, isSpent: row.status !== 'approved' };
  }

  /** Returns true for one of concurrent requests. */
  async spend(id: string, code: string): Promise<boolean> {
    return spend.matches(this.#sql, { id, ...codeForms(code) });
  }

  /** Scopes that the user has consented to, separated by spaces. Undefined: there is no consent. */
  async findConsent(userId: string, clientId: string): Promise<string | undefined> {
    return (await findConsent.first(this.#sql, { userId, clientId }))?.scopes;
  }

  /** Consents to clients that exist, newest first. */
  async listGrants(userId: string): Promise<readonly Grant[]> {
    return listGrants.run(this.#sql, { userId });
  }

  /** Revokes a consent, and ends the sessions of the client. Returns false if there is none. */
  async revokeGrant(grant: {
    readonly userId: string;
    readonly clientId: string;
    readonly at: Date;
    readonly audit: AuditEntry;
  }): Promise<boolean> {
    const isRevoked = await revokeGrant.matches(this.#sql, grant);
    if (isRevoked) this.#onChange?.(grant.userId);
    return isRevoked;
  }
}

/**
 * A code as it is stored, and what replaces it when it is exchanged: GoTrue deletes the row then,
 * and must not find the code, but a second use must be recognized.
 */
function codeForms(code: string): { readonly code: string; readonly spentCode: string } {
  const stored = toStoredForm(code);
  return { code: stored, spentCode: `spent:${createHash('sha256').update(stored).digest('base64url')}` };
}
