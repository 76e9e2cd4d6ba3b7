import { Batch, batchedInput, type Queryable, query, type Row } from '../db/connection.ts';
import type { CodeChallenge } from '../flows/pkce.ts';
import type { RequestToken } from '../identity-providers/connection.ts';
import type { ProviderTokens } from '../identity-providers/provider.ts';
import { toStoredForm } from '../keys/secrets.ts';
import type { User } from '../users/user.ts';
import { idsByEmail, toUser, userColumns } from '../users/user.ts';

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
  /** For PKCE between us and the provider, if it is stored for GoTrue. */
  readonly codeVerifier?: string | undefined;
}

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

const startInput = batchedInput(
  ...(['id uuid', 'challenge text', 'method text', 'provider text', 'token text', 'secret text'] as const),
  ...(['invite_token text', 'redirect_to text', 'linking_user_id uuid', 'verifier text'] as const),
  ...(['email_optional text', 'at timestamptz'] as const),
);

// An implicit flow has an empty challenge, and its random code is never sent: both columns are
// required in GoTrue's schemas before 2026.
const startSql = `
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
const takeSql = `
  with taken as (
    delete from flow_state where id = any(array(
      select f.id from ${batchedInput('id uuid')} cross join lateral (
        select id from flow_state where id = i.id and authentication_method = 'oauth' and user_id is null
        for update skip locked) f))
    returning id, provider_type, code_challenge, code_challenge_method, provider_access_token, provider_refresh_token,
      invite_token, referrer, linking_target_id, oauth_client_state_id, email_optional, created_at
  ), verifiers as (
    delete from oauth_client_states where id = any(array(select oauth_client_state_id from taken))
    returning id, provider_type, code_verifier
  )
  select t.*, v.code_verifier from taken t
  left join verifiers v on v.id = t.oauth_client_state_id and v.provider_type = t.provider_type`;

const isSpentSql = 'select 1 from flow_state where id = $1 and user_id is not null';

const findSql = `
  select id, provider_type, code_challenge, code_challenge_method, provider_access_token, provider_refresh_token,
    invite_token, referrer, linking_target_id, email_optional, created_at
  from flow_state where id = $1 and authentication_method = 'oauth' and user_id is null`;

const issueCodeSql = `
  insert into flow_state (id, user_id, auth_code, code_challenge, code_challenge_method, provider_type,
    provider_access_token, provider_refresh_token, authentication_method, created_at, updated_at, auth_code_issued_at)
  values ($1, $2, $3, $4, $5::code_challenge_method, $6, $7, $8, 'oauth', $9, $9, $9)`;

// Unverified emails of identities do not count: an attacker could add a victim's to an own account.
const findCandidatesSql = `
  select i.position::int, c.*
  from ${batchedInput('provider text', 'provider_id text', 'emails text', 'aud text')}
  cross join lateral (
    select ${userColumns}, exists (
      select 1 from identities o where o.user_id = u.id and o.provider = i.provider and o.provider_id = i.provider_id
    ) as has_identity
    from users u
    where u.deleted_at is null and u.id in (
      select user_id from identities where provider = i.provider and provider_id = i.provider_id
      union select id from users where id = any(array(${idsByEmail("string_to_array(i.emails, ' ')")}))
        and aud = i.aud and is_sso_user = false
      union select user_id from identities where email = any(string_to_array(i.emails, ' '))
        and identity_data ->> 'email_verified' = 'true' and provider not like 'sso:%'
    )
    order by has_identity desc, u.created_at, u.id limit 3
  ) c
  order by i.position, c.has_identity desc, c.created_at, c.id`;

const findIdentityIdSql = `
  select provider_id from identities where provider = $1 and provider_id = any($2::text[])
  order by array_position($2::text[], provider_id) limit 1`;

// A locked identity is touched by another sign-in.
const touchIdentitySql = `
  update identities set last_sign_in_at = t.at
  from (
    select o.id, i.at from ${batchedInput('provider text', 'provider_id text', 'at timestamptz')} cross join lateral (
      select id from identities where provider = i.provider and provider_id = i.provider_id
      for no key update skip locked) o
  ) t
  where identities.id = t.id`;

// The row of the user is locked, so that concurrent requests see each other's deletions.
const deleteIdentitySql = `
  with owner as (select id from users where id = $1 for update)
  delete from identities where user_id = (select id from owner) and id = $2
    and (select count(*) from identities where user_id = $1) > 1
  returning 1`;

const keepOnlyIdentitySql =
  'delete from identities where user_id = $1 and (provider, provider_id) <> ($2, $3)';

/** Each statement in flight uses a connection. */
const maxConcurrent = 2;

interface CandidateKey extends IdentityKey {
  readonly verifiedEmails: readonly string[];
  readonly aud: string;
}

/** Sign-ins at external providers, and the users that they belong to. */
export class ProviderStore {
  readonly #sql: Queryable;
  readonly #starts: Batch<SignInFlow & { readonly at: Date }, undefined>;
  readonly #takes: Batch<string, Row | undefined>;
  readonly #candidates: Batch<CandidateKey, readonly Row[]>;
  readonly #touches: Batch<IdentityKey & { readonly at: Date }, undefined>;

  constructor(sql: Queryable) {
    this.#sql = sql;
    this.#starts = new Batch({ maxConcurrent, run: (flows) => runStarts(sql, flows) });
    this.#takes = new Batch({ maxConcurrent, run: (ids) => runTakes(sql, ids) });
    this.#candidates = new Batch({ maxConcurrent, run: (keys) => runCandidates(sql, keys) });
    this.#touches = new Batch({ maxConcurrent, run: (keys) => runTouches(sql, keys) });
  }

  async start(flow: SignInFlow, at: Date): Promise<void> {
    await this.#starts.add({ ...flow, at });
  }

  async find(id: string): Promise<(SignInFlow & { readonly createdAt: Date }) | undefined> {
    const [row] = await query(this.#sql, findSql, [id]);
    return row && toFlow(id, row);
  }

  /** Removes a flow and returns it. Of concurrent callbacks one gets it. */
  async take(id: string): Promise<(SignInFlow & { readonly createdAt: Date }) | undefined> {
    const row = await this.#takes.add(id);
    return row && toFlow(id, row);
  }

  /** Whether a state was used, until its code is exchanged or expires. */
  async isSpent(id: string): Promise<boolean> {
    return (await query(this.#sql, isSpentSql, [id])).length > 0;
  }

  async issueCode(code: IssuedCode): Promise<void> {
    await query(this.#sql, issueCodeSql, [
      code.id,
      code.userId,
      toStoredForm(code.code),
      code.challenge,
      code.method,
      code.provider,
      code.tokens.accessToken,
      code.tokens.refreshToken,
      code.at,
    ]);
  }

  /** The owner of an identity, and users with one of the verified emails. At most three. */
  async findCandidates(key: CandidateKey): Promise<readonly Candidate[]> {
    const rows = await this.#candidates.add(key);
    return rows.map((row) => ({ user: toUser(row), hasIdentity: row.has_identity === true }));
  }

  /** The first of several forms of an id that is stored; undefined if none is. */
  async findIdentityId(provider: string, ids: readonly string[]): Promise<string | undefined> {
    const [row] = await query(this.#sql, findIdentityIdSql, [provider, ids]);
    return row && String(row.provider_id);
  }

  async touchIdentity({ provider, id }: IdentityKey, at: Date): Promise<void> {
    await this.#touches.add({ provider, id, at });
  }

  /** Removes an identity. Returns false if it does not exist or is the last one. */
  async deleteIdentity(userId: string, identityId: string): Promise<boolean> {
    return (await query(this.#sql, deleteIdentitySql, [userId, identityId])).length > 0;
  }

  /** Removes all identities of a user but one. */
  async keepOnlyIdentity(userId: string, identity: IdentityKey): Promise<void> {
    await query(this.#sql, keepOnlyIdentitySql, [userId, identity.provider, identity.id]);
  }
}

async function runStarts(
  sql: Queryable,
  flows: readonly (SignInFlow & { readonly at: Date })[],
): Promise<undefined[]> {
  await query(sql, startSql, [
    flows.map(({ id }) => id),
    flows.map(({ challenge }) => challenge?.challenge ?? ''),
    flows.map(({ challenge }) => challenge?.method ?? 's256'),
    flows.map(({ provider }) => provider),
    flows.map(({ requestToken }) => requestToken.token),
    flows.map(({ requestToken }) => requestToken.secret),
    flows.map(({ inviteToken }) => inviteToken),
    flows.map(({ redirectTo }) => redirectTo),
    flows.map(({ linkingUserId }) => linkingUserId ?? null),
    flows.map(({ codeVerifier }) => codeVerifier ?? ''),
    flows.map(({ emailOptional }) => String(emailOptional)),
    flows.map(({ at }) => at.toISOString()),
  ]);
  return flows.map(() => undefined);
}

/** An id that is twice in the batch gets its row once. */
async function runTakes(sql: Queryable, ids: readonly string[]): Promise<(Row | undefined)[]> {
  const taken = new Map((await query(sql, takeSql, [ids])).map((row) => [row.id, row]));
  return ids.map((id) => {
    const row = taken.get(id);
    taken.delete(id);
    return row;
  });
}

async function runCandidates(sql: Queryable, keys: readonly CandidateKey[]): Promise<(readonly Row[])[]> {
  const rows = await query(sql, findCandidatesSql, [
    keys.map(({ provider }) => provider),
    keys.map(({ id }) => id),
    // An email has no spaces.
    keys.map(({ verifiedEmails }) => verifiedEmails.join(' ')),
    keys.map(({ aud }) => aud),
  ]);
  const byPosition = Map.groupBy(rows, ({ position }) => position);
  return keys.map((_, index) => byPosition.get(index + 1) ?? []);
}

async function runTouches(
  sql: Queryable,
  keys: readonly (IdentityKey & { readonly at: Date })[],
): Promise<undefined[]> {
  await query(sql, touchIdentitySql, [
    keys.map(({ provider }) => provider),
    keys.map(({ id }) => id),
    keys.map(({ at }) => at.toISOString()),
  ]);
  return keys.map(() => undefined);
}

interface FlowRow {
  readonly provider_type: string;
  readonly code_challenge: string | null;
  readonly code_challenge_method: CodeChallenge['method'] | null;
  readonly provider_access_token: string | null;
  readonly provider_refresh_token: string | null;
  readonly invite_token: string | null;
  readonly referrer: string | null;
  readonly linking_target_id: string | null;
  readonly email_optional: boolean;
  /** Undefined where it is not selected. */
  readonly code_verifier?: string | null;
  readonly created_at: Date;
}

function toFlow(id: string, row: Row): SignInFlow & { readonly createdAt: Date } {
  // Parsed boundary: these are the columns returned above, with the types of the schema.
  const r = row as unknown as FlowRow;
  const { code_challenge: challenge, code_challenge_method: method } = r;
  return {
    id,
    provider: r.provider_type,
    redirectTo: r.referrer ?? '',
    challenge: challenge && method ? { challenge, method } : undefined,
    inviteToken: r.invite_token ?? '',
    linkingUserId: r.linking_target_id ?? undefined,
    requestToken: { token: r.provider_access_token ?? '', secret: r.provider_refresh_token ?? '' },
    emailOptional: r.email_optional,
    codeVerifier: r.code_verifier ?? undefined,
    createdAt: r.created_at,
  };
}
