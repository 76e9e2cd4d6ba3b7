import { Batch, type Queryable } from '../db/connection.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { boolean, integer, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import {
  columnNames,
  parameters,
  raw,
  type Statement,
  type StatementRow,
  statement,
} from '../db/statement.ts';
import type { CodeChallenge } from '../flows/store.ts';
import type { RequestToken } from '../identity-providers/connection.ts';
import type { ProviderTokens } from '../identity-providers/provider.ts';
import { toStoredForm } from '../keys/secrets.ts';
import { idsByEmail, toUser, type User, userColumns, userRow } from '../users/user.ts';

/** A sign-in that is waiting for its callback. */
export interface SignInFlow {
  readonly id: string;
  readonly provider: string;
  /** Validated at the start. */
  readonly redirectTo: string;
  /** Challenge of the client; undefined for the implicit flow. */
  readonly challenge: CodeChallenge | undefined;
  /** Empty for none. */
  readonly inviteToken: string;
  /** The user who links an identity; undefined for a sign-in. */
  readonly linkingUserId: string | undefined;
  /** Empty but for OAuth 1.0a. */
  readonly requestToken: RequestToken;
  /** Whether GoTrue may complete the sign-in of a user without email. */
  readonly emailOptional: boolean;
  /** Verifier of PKCE between us and the provider, if it is stored for GoTrue. */
  readonly codeVerifier?: string | undefined;
}

/** A sign-in whose callback has arrived. */
export type StartedFlow = SignInFlow & { readonly createdAt: Date };

/** A user who may own an identity. */
interface Candidate {
  readonly user: User;
  /** Whether the user has the identity; otherwise only an email in common. */
  readonly hasIdentity: boolean;
}

interface IdentityKey {
  readonly provider: string;
  /** Id of the user at the provider. */
  readonly id: string;
}

/** A code that a client exchanges for the session of a sign-in at a provider. */
interface IssuedCode extends CodeChallenge {
  readonly id: string;
  readonly code: string;
  readonly userId: string;
  readonly provider: string;
  readonly tokens: ProviderTokens;
  readonly at: Date;
}

interface CandidateKey extends IdentityKey {
  readonly verifiedEmails: readonly string[];
  readonly aud: string;
}

const p = {
  ...parameters(uuid, 'id', 'userId', 'identityId'),
  ...parameters(text, 'code', 'challenge', 'method', 'provider', 'accessToken', 'refreshToken', 'providerId'),
  ...parameters(timestamptz, 'at'),
  ...parameters(text.list, 'ids'),
};

const flowRow = {
  id: uuid,
  provider_type: text,
  code_challenge: text.orNull,
  code_challenge_method: text.as<CodeChallenge['method']>().orNull,
  provider_access_token: text.orNull,
  provider_refresh_token: text.orNull,
  invite_token: text.orNull,
  referrer: text.orNull,
  linking_target_id: uuid.orNull,
  email_optional: boolean,
  created_at: timestamptz.notNull,
};

interface DatedFlow extends SignInFlow {
  readonly at: Date;
}

const startInput = batchedInput<DatedFlow>({
  id: column(uuid, ({ id }) => id),
  challenge: column(text, ({ challenge }) => challenge?.challenge ?? ''),
  method: column(text, ({ challenge }) => challenge?.method ?? 's256'),
  provider: column(text, ({ provider }) => provider),
  token: column(text, ({ requestToken }) => requestToken.token),
  secret: column(text, ({ requestToken }) => requestToken.secret),
  invite_token: column(text, ({ inviteToken }) => inviteToken),
  redirect_to: column(text, ({ redirectTo }) => redirectTo),
  linking_user_id: column(uuid.orNull, ({ linkingUserId }) => linkingUserId ?? null),
  verifier: column(text, ({ codeVerifier }) => codeVerifier ?? ''),
  email_optional: column(text, ({ emailOptional }) => String(emailOptional)),
  at: column(timestamptz, ({ at }) => at),
});

// An implicit flow has an empty challenge, and its random code is never sent: both columns are
// required in GoTrue's schemas before 2026.
const startFlows = statement({})`
  with input as materialized (
    select *, case when verifier <> '' then gen_random_uuid() end as verifier_id from ${startInput}
  ), verifiers as (
    insert into oauth_client_states (id, provider_type, code_verifier, created_at)
    select verifier_id, provider, verifier, at from input where verifier_id is not null
  )
  insert into flow_state (id, auth_code, code_challenge, code_challenge_method, provider_type, provider_access_token,
    provider_refresh_token, authentication_method, invite_token, referrer, linking_target_id, oauth_client_state_id,
    email_optional, created_at, updated_at)
  select id, gen_random_uuid()::text, challenge, method::code_challenge_method, provider, token, secret, 'oauth',
    invite_token, redirect_to, linking_user_id, verifier_id, email_optional::boolean, at, at
  from input`;

// Only before its code is issued: a state is used once, and not as an id of something else.
// A locked row is taken by another callback.
const take = statement({ ...flowRow, oauth_client_state_id: uuid.orNull, code_verifier: text.orNull })`
  with taken as (
    delete from flow_state where id = any(array(
      select f.id from ${batchedInput<string>({ id: column(uuid, (id) => id) })} cross join lateral (
        select id from flow_state where id = i.id and authentication_method = 'oauth' and user_id is null
        for update skip locked) f))
    returning ${columnNames(flowRow)}, oauth_client_state_id
  ), verifiers as (
    delete from oauth_client_states where id = any(array(select oauth_client_state_id from taken))
    returning id, provider_type, code_verifier
  )
  select t.*, v.code_verifier from taken t
  left join verifiers v on v.id = t.oauth_client_state_id and v.provider_type = t.provider_type`;

const isSpent = statement({})`select 1 from flow_state where id = ${p.id} and user_id is not null`;

const find = statement(flowRow)`
  select ${columnNames(flowRow)} from flow_state where id = ${p.id} and authentication_method = 'oauth' and user_id is null`;

const issueCode = statement({})`
  insert into flow_state (id, user_id, auth_code, code_challenge, code_challenge_method, provider_type,
    provider_access_token, provider_refresh_token, authentication_method, created_at, updated_at, auth_code_issued_at)
  values (${p.id}, ${p.userId}, ${p.code}, ${p.challenge}, ${p.method}::code_challenge_method, ${p.provider},
    ${p.accessToken}, ${p.refreshToken}, 'oauth', ${p.at}, ${p.at}, ${p.at})`;

// Unverified emails of identities do not count: an attacker could add a victim's to an own account.
const findCandidates = statement({ position: integer, ...userRow, has_identity: boolean })`
  select i.position::int, c.*
  from ${batchedInput<CandidateKey>({
    provider: column(text, ({ provider }) => provider),
    provider_id: column(text, ({ id }) => id),
    // An email has no spaces.
    emails: column(text, ({ verifiedEmails }) => verifiedEmails.join(' ')),
    aud: column(text, ({ aud }) => aud),
  })}
  cross join lateral (
    select ${userColumns}, exists (
      select 1 from identities o where o.user_id = u.id and o.provider = i.provider and o.provider_id = i.provider_id
    ) as has_identity
    from users u
    where u.deleted_at is null and u.id in (
      select user_id from identities where provider = i.provider and provider_id = i.provider_id
      union select id from users where id = any(array(${idsByEmail(raw("string_to_array(i.emails, ' ')"))}))
        and aud = i.aud and is_sso_user = false
      union select user_id from identities where email = any(string_to_array(i.emails, ' '))
        and identity_data ->> 'email_verified' = 'true' and provider not like 'sso:%'
    )
    order by has_identity desc, u.created_at, u.id limit 3
  ) c
  order by i.position, c.has_identity desc, c.created_at, c.id`;

const findIdentityId = statement({ provider_id: text })`
  select provider_id from identities where provider = ${p.provider} and provider_id = any(${p.ids}::text[])
  order by array_position(${p.ids}::text[], provider_id) limit 1`;

// A locked identity is touched by another sign-in.
const touchIdentities = statement({})`
  update identities set last_sign_in_at = t.at
  from (
    select o.id, i.at from ${batchedInput<IdentityKey & { readonly at: Date }>({
      provider: column(text, ({ provider }) => provider),
      provider_id: column(text, ({ id }) => id),
      at: column(timestamptz, ({ at }) => at),
    })} cross join lateral (
      select id from identities where provider = i.provider and provider_id = i.provider_id
      for no key update skip locked) o
  ) t
  where identities.id = t.id`;

// The row of the user is locked, so that concurrent requests see each other's deletions.
const deleteIdentity = statement({})`
  with owner as (select id from users where id = ${p.userId} for update)
  delete from identities where user_id = (select id from owner) and id = ${p.identityId}
    and (select count(*) from identities where user_id = ${p.userId}) > 1
  returning 1`;

const keepOnlyIdentity = statement({})`
  delete from identities where user_id = ${p.userId} and (provider, provider_id) <> (${p.provider}, ${p.providerId})`;

type TakenFlow = StatementRow<typeof take>;
type CandidateRow = StatementRow<typeof findCandidates>;

/** Each statement in flight uses a connection. */
const maxConcurrent = 2;

/** Sign-ins at external providers, and the users that they belong to. */
export class ProviderStore {
  readonly #sql: Queryable;
  readonly #starts: Batch<DatedFlow, undefined>;
  readonly #takes: Batch<string, TakenFlow | undefined>;
  readonly #candidates: Batch<CandidateKey, readonly CandidateRow[]>;
  readonly #touches: Batch<IdentityKey & { readonly at: Date }, undefined>;

  constructor(sql: Queryable) {
    this.#sql = sql;
    this.#starts = new Batch({ maxConcurrent, run: (items) => runAll(startFlows, sql, items) });
    this.#takes = new Batch({ maxConcurrent, run: (ids) => runTakes(sql, ids) });
    this.#candidates = new Batch({ maxConcurrent, run: (keys) => runCandidates(sql, keys) });
    this.#touches = new Batch({ maxConcurrent, run: (items) => runAll(touchIdentities, sql, items) });
  }

  async start(flow: SignInFlow, at: Date): Promise<void> {
    await this.#starts.add({ ...flow, at });
  }

  async find(id: string): Promise<(SignInFlow & { readonly createdAt: Date }) | undefined> {
    const row = await find.first(this.#sql, { id });
    return row && toFlow(row);
  }

  /** Removes a flow and returns it. Of concurrent callbacks one gets it. */
  async take(id: string): Promise<(SignInFlow & { readonly createdAt: Date }) | undefined> {
    const row = await this.#takes.add(id);
    return row && { ...toFlow(row), codeVerifier: row.code_verifier ?? undefined };
  }

  /** Whether a state was used, until its code is exchanged or expires. */
  async isSpent(id: string): Promise<boolean> {
    return isSpent.matches(this.#sql, { id });
  }

  async issueCode(code: IssuedCode): Promise<void> {
    await issueCode.run(this.#sql, { ...code, ...code.tokens, code: toStoredForm(code.code) });
  }

  /** The owner of an identity, and users with one of the verified emails. At most three. */
  async findCandidates(key: CandidateKey): Promise<readonly Candidate[]> {
    const rows = await this.#candidates.add(key);
    return rows.map((row) => ({ user: toUser(row), hasIdentity: row.has_identity }));
  }

  /** The first of several forms of an id that is stored; undefined if none is. */
  async findIdentityId(provider: string, ids: readonly string[]): Promise<string | undefined> {
    return (await findIdentityId.first(this.#sql, { provider, ids }))?.provider_id;
  }

  async touchIdentity({ provider, id }: IdentityKey, at: Date): Promise<void> {
    await this.#touches.add({ provider, id, at });
  }

  /** Removes an identity. Returns false if it does not exist or is the last one. */
  async deleteIdentity(userId: string, identityId: string): Promise<boolean> {
    return deleteIdentity.matches(this.#sql, { userId, identityId });
  }

  /** Removes all identities of a user but one. */
  async keepOnlyIdentity(userId: string, identity: IdentityKey): Promise<void> {
    await keepOnlyIdentity.run(this.#sql, { userId, provider: identity.provider, providerId: identity.id });
  }
}

/** Runs a statement without rows. */
async function runAll<T>(
  statement: Statement<{ readonly items: readonly T[] }, unknown>,
  sql: Queryable,
  items: readonly T[],
): Promise<undefined[]> {
  await statement.run(sql, { items });
  return items.map(() => undefined);
}

/** An id that is twice in the batch gets its row once. */
async function runTakes(sql: Queryable, ids: readonly string[]): Promise<(TakenFlow | undefined)[]> {
  const taken = new Map((await take.run(sql, { items: ids })).map((row) => [row.id, row]));
  return ids.map((id) => {
    const row = taken.get(id);
    taken.delete(id);
    return row;
  });
}

async function runCandidates(
  sql: Queryable,
  keys: readonly CandidateKey[],
): Promise<(readonly CandidateRow[])[]> {
  const rows = await findCandidates.run(sql, { items: keys });
  const byPosition = Map.groupBy(rows, ({ position }) => position);
  return keys.map((_, index) => byPosition.get(index + 1) ?? []);
}

function toFlow(r: RowOf<typeof flowRow>): StartedFlow {
  const { code_challenge: challenge, code_challenge_method: method } = r;
  return {
    id: r.id,
    provider: r.provider_type,
    redirectTo: r.referrer ?? '',
    challenge: challenge && method ? { challenge, method } : undefined,
    inviteToken: r.invite_token ?? '',
    linkingUserId: r.linking_target_id ?? undefined,
    requestToken: { token: r.provider_access_token ?? '', secret: r.provider_refresh_token ?? '' },
    emailOptional: r.email_optional,
    createdAt: r.created_at,
  };
}
