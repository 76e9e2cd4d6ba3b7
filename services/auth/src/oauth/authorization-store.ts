import { createHash } from 'node:crypto';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { AuthorizationDetail } from '../config/oauth-permissions.ts';
import type { Queryable } from '../db/connection.ts';
import { lockOwner } from '../db/fragments.ts';
import { integer, jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { columnNames, fragment, parameters, statement } from '../db/statement.ts';
import type { ChallengeMethod } from '../flows/store.ts';
import { toStoredForm } from '../keys/secrets.ts';
import { type Authentication, authenticationRow } from '../sessions/authentication-store.ts';
import type { RequestedDetails } from './authorization-details.ts';

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

/** Columns of our table of requests. They are null without parameters of OpenID Connect. */
const oidcRow = {
  /** Values separated by spaces. */
  prompt: text.orNull,
  /** A number of seconds. */
  max_age: integer.orNull,
  response_mode: text.orNull,
  hinted_user_id: uuid.orNull,
  /** The thumbprint of the key that the code is bound to. @see RFC 9449 §10 */
  dpop_jkt: text.orNull,
  authorization_details: jsonOf<RequestedDetails>().orNull,
  /** Null before the approval, as the next two are. */
  authenticated_at: timestamptz.orNull,
  aal: authenticationRow.aal.orNull,
  methods: text.list.orNull,
};

export const requestRow = { ...authorizationRow, ...oidcRow };

/** A request of a client for access to the resources of a user. */
export type Authorization = RowOf<typeof requestRow>;

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
  | 'prompt'
  | 'max_age'
  | 'response_mode'
  | 'hinted_user_id'
  | 'dpop_jkt'
  | 'authorization_details'
>;

const grantRow = {
  client_id: uuid,
  client_name: text.orNull,
  client_uri: text.orNull,
  logo_uri: text.orNull,
  /** Separated by spaces. */
  scopes: text,
  granted_at: timestamptz,
  /** The metadata document that identifies the client. */
  document_url: text.orNull,
  /** The last time when a session of the client was started or refreshed. */
  last_used_at: timestamptz.orNull,
  /** Resources that the access is for, sorted. */
  resources: text.list,
  /** Types of authorization details, sorted. */
  details_types: text.list,
};

/** The consent of a user to a client. */
export type Grant = RowOf<typeof grantRow>;

/** The scopes of a consent, separated by spaces, and its authorization details. */
export interface Consent {
  /** All scopes, for whatever resource. */
  readonly scopes: string;
  /** The scopes for the resource in question, or for none. */
  readonly resource_scopes: string;
  /** The details for the resource in question, or for none. */
  readonly resource_details: readonly AuthorizationDetail[];
}

const p = {
  ...parameters(uuid, 'id', 'userId', 'clientId'),
  ...parameters(text, 'authorizationId', 'code', 'spentCode', 'scopes', 'redirectUri', 'scope'),
  ...parameters(text, 'consentResource', 'resourceScopes'),
  ...parameters(
    text.orNull,
    'state',
    'resource',
    'challenge',
    'method',
    'nonce',
    'prompt',
    'responseMode',
    'thumbprint',
    'aal',
  ),
  ...parameters(uuid.orNull, 'hintedUserId', 'approvedBy'),
  ...parameters(integer.orNull, 'maxAge'),
  ...parameters(text.list.orNull, 'methods'),
  ...parameters(jsonOf<RequestedDetails>().orNull, 'details'),
  ...parameters(jsonOf<readonly AuthorizationDetail[]>(), 'resourceDetails'),
  ...parameters(timestamptz, 'at', 'expiresAt'),
  ...parameters(timestamptz.orNull, 'authenticatedAt'),
};

/** Columns of {@link requestRow}. */
export const requestColumns = columnNames(requestRow);

const selectRequest = fragment`select ${requestColumns}
  from oauth_authorizations left join oidc_authorizations on request_id = id`;

const insert = statement({})`
  with request as (
    insert into oauth_authorizations (id, authorization_id, client_id, redirect_uri, scope, state, resource, code_challenge,
      code_challenge_method, created_at, expires_at, nonce)
    values (${p.id}, ${p.authorizationId}, ${p.clientId}, ${p.redirectUri}, ${p.scope}, ${p.state}, ${p.resource}, ${p.challenge},
      ${p.method}::code_challenge_method, ${p.at}, ${p.expiresAt}, ${p.nonce})
  )
  insert into oidc_authorizations (request_id, prompt, max_age, response_mode, hinted_user_id, dpop_jkt, authorization_details, stored_at)
  select ${p.id}, ${p.prompt}, ${p.maxAge}, ${p.responseMode}, ${p.hintedUserId}, ${p.thumbprint}, ${p.details}, ${p.at}
  where num_nonnulls(${p.prompt}::text, ${p.maxAge}::integer, ${p.responseMode}::text, ${p.hintedUserId}::uuid, ${p.thumbprint}::text,
    ${p.details}::jsonb) > 0`;

const find = statement(requestRow)`${selectRequest} where authorization_id = ${p.authorizationId}`;

const isPending = fragment`authorization_id = ${p.authorizationId} and status = 'pending' and expires_at > ${p.at}`;

const claim = statement({})`
  update oauth_authorizations set user_id = ${p.userId}
  where ${isPending} and (user_id is null or user_id = ${p.userId}) returning id`;

// A code replaces the request: it has a lifetime of its own. The consent is extended; one of GoTrue
// keeps its scopes for no resource. A token without a session does not say how its user has
// authenticated.
const approve = statement({})`
  with owner as (${lockOwner(p.userId)}), approved as (
    update oauth_authorizations
    set status = 'approved', approved_at = ${p.at}, authorization_code = ${p.code}, expires_at = ${p.expiresAt}
    where ${isPending} and user_id = (select id from owner) returning id, user_id, client_id
  ), authentication as (
    insert into oidc_authorizations (request_id, authenticated_at, aal, methods, approved_by, stored_at)
    select id, ${p.authenticatedAt}, ${p.aal}, ${p.methods}, ${p.approvedBy}, ${p.at} from approved where ${p.authenticatedAt}::timestamptz is not null
    on conflict (request_id) do update
    set authenticated_at = excluded.authenticated_at, aal = excluded.aal, methods = excluded.methods,
      approved_by = excluded.approved_by
  ), consent as (
    insert into oauth_consents (id, user_id, client_id, scopes, granted_at)
    select gen_random_uuid(), user_id, client_id, ${p.scopes}, ${p.at} from approved
    on conflict (user_id, client_id) do update
    set scopes = excluded.scopes, granted_at = excluded.granted_at, revoked_at = null
    returning id
  ), first_resource as (
    insert into oauth_consent_resources (consent_id, resource, scopes)
    select c.id, '', c.scopes from oauth_consents c join approved using (user_id, client_id)
    where ${p.consentResource} <> '' and c.revoked_at is null
      and not exists (select 1 from oauth_consent_resources r where r.consent_id = c.id)
    on conflict do nothing
  ), resource as (
    insert into oauth_consent_resources (consent_id, resource, scopes, authorization_details)
    select id, ${p.consentResource}, ${p.resourceScopes}, ${p.resourceDetails} from consent
    on conflict (consent_id, resource) do update
    set scopes = excluded.scopes, authorization_details = excluded.authorization_details
  ), audit as (${auditInsert('approved')})
  select 1 from approved`;

const deny = statement({})`
  with denied as (
    update oauth_authorizations set status = 'denied' where ${isPending} and user_id = ${p.userId} returning id
  ), audit as (${auditInsert('denied')})
  select 1 from denied`;

const refuse = statement({})`
  update oauth_authorizations set status = 'denied' where ${isPending} returning id`;

const findByCode = statement(requestRow)`
  ${selectRequest} where authorization_code in (${p.code}, ${p.spentCode})`;

const lock = statement({ id: uuid })`${lockOwner(p.userId)}`;

const spend = statement({})`
  update oauth_authorizations set authorization_code = ${p.spentCode}, status = 'expired'
  where id = ${p.id} and authorization_code = ${p.code} and status = 'approved' returning id`;

const spendApproved = statement({})`
  update oauth_authorizations set authorization_code = null, status = 'expired'
  where id = ${p.id} and status = 'approved' returning id`;

const consentRow = {
  scopes: text,
  resource_scopes: text,
  resource_details: jsonOf<readonly AuthorizationDetail[]>(),
};

const findConsent = statement(consentRow)`
  select scopes, case
      when exists (select 1 from oauth_consent_resources where consent_id = c.id) then
        coalesce((select scopes from oauth_consent_resources where consent_id = c.id and resource = ${p.consentResource}), '')
      when ${p.consentResource} = '' then scopes
      else ''
    end as resource_scopes,
    coalesce((select authorization_details from oauth_consent_resources where consent_id = c.id and resource = ${p.consentResource}), '[]')
      as resource_details
  from oauth_consents c where user_id = ${p.userId} and client_id = ${p.clientId} and revoked_at is null`;

const listGrants = statement(grantRow)`
  select c.id as client_id, c.client_name, c.client_uri, c.logo_uri, g.scopes, g.granted_at, o.document_url,
    (select max(coalesce(s.refreshed_at at time zone 'utc', s.created_at)) from sessions s
      where s.user_id = g.user_id and s.oauth_client_id = c.id) as last_used_at,
    array(select r.resource from oauth_consent_resources r where r.consent_id = g.id and r.resource <> '' order by 1) as resources,
    array(select distinct d ->> 'type' from oauth_consent_resources r, jsonb_array_elements(r.authorization_details) d
      where r.consent_id = g.id order by 1) as details_types
  from oauth_consents g join oauth_clients c on c.id = g.client_id
    left join oauth_client_settings o on o.client_id = c.id
  where g.user_id = ${p.userId} and g.revoked_at is null and c.deleted_at is null
  order by g.granted_at desc, c.id`;

// Codes that were not exchanged yet end, too.
const revokeGrant = statement({})`
  with revoked as (
    update oauth_consents set revoked_at = greatest(${p.at}, granted_at)
    where user_id = ${p.userId} and client_id = ${p.clientId} and revoked_at is null returning id
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
      maxAge: authorization.max_age,
      responseMode: authorization.response_mode,
      hintedUserId: authorization.hinted_user_id,
      thumbprint: authorization.dpop_jkt,
      details: authorization.authorization_details,
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
    decision: Decision & {
      readonly code: string;
      readonly expiresAt: Date;
      readonly consent: Consent;
      readonly resource: string | null;
      readonly authentication: Authentication | undefined;
      /** The session whose end is that of the client's session, too. */
      readonly approvedBy: string | undefined;
    },
  ): Promise<boolean> {
    const { authentication, consent } = decision;
    return approve.matches(this.#sql, {
      ...decision,
      code: toStoredForm(decision.code),
      scopes: consent.scopes,
      resourceScopes: consent.resource_scopes,
      resourceDetails: consent.resource_details,
      consentResource: decision.resource ?? '',
      authenticatedAt: authentication?.authenticated_at,
      aal: authentication?.aal,
      methods: authentication?.methods,
    });
  }

  async deny(decision: Decision): Promise<boolean> {
    return deny.matches(this.#sql, decision);
  }

  /** Ends a request without a decision of the user. */
  async refuse(request: Pick<Decision, 'authorizationId' | 'at'>): Promise<boolean> {
    return refuse.matches(this.#sql, request);
  }

  /** `isSpent`: the code was exchanged before. */
  async findByCode(code: string): Promise<(Authorization & { readonly isSpent: boolean }) | undefined> {
    const row = await findByCode.first(this.#sql, codeForms(code));
    return row && { ...row, isSpent: row.status !== 'approved' };
  }

  /**
   * First in a transaction that spends a code or revokes a consent: of two, the statements of the
   * one that waits see what the other has done.
   */
  async lockOwner(userId: string): Promise<void> {
    await lock.run(this.#sql, { userId });
  }

  /** Returns true for one of concurrent requests. */
  async spend(id: string, code: string): Promise<boolean> {
    return spend.matches(this.#sql, { id, ...codeForms(code) });
  }

  /** Uses up an approved request without its code. Returns true for one of concurrent requests. */
  async spendApproved(id: string): Promise<boolean> {
    return spendApproved.matches(this.#sql, { id });
  }

  /** The consent of a user to a client. Undefined: there is none. */
  async findConsent(userId: string, clientId: string, resource: string | null): Promise<Consent | undefined> {
    return findConsent.first(this.#sql, { userId, clientId, consentResource: resource ?? '' });
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
