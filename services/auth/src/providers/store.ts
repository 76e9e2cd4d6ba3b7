import { type Queryable, query, type Row } from '../db/connection.ts';
import type { ProviderTokens } from '../sessions/issue.ts';
import type { CodeChallenge } from '../sign-in/pkce.ts';
import type { User } from '../users/user.ts';
import { toUser, userColumns } from '../users/user.ts';
import type { RequestToken } from './connection.ts';

/** A sign-in that is waiting for its callback. */
export interface SignInFlow {
  readonly id: string;
  readonly provider: string;
  /** Validated at the start. */
  readonly redirectTo: string;
  /** Of the client; undefined for the implicit flow. */
  readonly challenge: CodeChallenge | undefined;
  /** Empty for none. */
  readonly inviteToken: string;
  /** The user who links an identity; undefined for a sign-in. */
  readonly linkingUserId: string | undefined;
  /** Empty but for OAuth 1.0a. */
  readonly requestToken: RequestToken;
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

// An implicit flow has an empty challenge, and its random code is never sent: both columns are
// required in GoTrue's schemas before 2026.
const startSql = `
  insert into flow_state (id, auth_code, code_challenge, code_challenge_method, provider_type, provider_access_token,
    provider_refresh_token, authentication_method, invite_token, referrer, linking_target_id, created_at, updated_at)
  values ($1, gen_random_uuid()::text, $2, $3::code_challenge_method, $4, $5, $6, 'oauth', $7, $8, $9, $10, $10)`;

// Only before its code is issued: a state is used once, and not as an id of something else.
const takeSql = `
  delete from flow_state where id = $1 and authentication_method = 'oauth' and user_id is null
  returning provider_type, code_challenge, code_challenge_method, provider_access_token, provider_refresh_token,
    invite_token, referrer, linking_target_id, created_at`;

const issueCodeSql = `
  insert into flow_state (id, user_id, auth_code, code_challenge, code_challenge_method, provider_type,
    provider_access_token, provider_refresh_token, authentication_method, created_at, updated_at, auth_code_issued_at)
  values ($1, $2, $3, $4, $5::code_challenge_method, $6, $7, $8, 'oauth', $9, $9, $9)`;

// Unverified emails of identities do not count: an attacker could add a victim's to an own account.
const findCandidatesSql = `
  select ${userColumns}, exists (
    select 1 from identities i where i.user_id = u.id and i.provider = $1 and i.provider_id = $2
  ) as has_identity
  from users u
  where u.deleted_at is null and u.id in (
    select user_id from identities where provider = $1 and provider_id = $2
    union select id from users where email = any($3::text[]) and aud = $4 and is_sso_user = false
    union select user_id from identities where email = any($3::text[])
      and identity_data ->> 'email_verified' = 'true' and provider not like 'sso:%'
  )
  order by has_identity desc, u.created_at, u.id limit 3`;

const findIdentityIdSql = `
  select provider_id from identities where provider = $1 and provider_id = any($2::text[])
  order by array_position($2::text[], provider_id) limit 1`;

const touchIdentitySql =
  'update identities set last_sign_in_at = $3 where provider = $1 and provider_id = $2';

// The row of the user is locked, so that concurrent requests see each other's deletions.
const deleteIdentitySql = `
  with owner as (select id from users where id = $1 for update)
  delete from identities where user_id = (select id from owner) and id = $2
    and (select count(*) from identities where user_id = $1) > 1
  returning 1`;

const keepOnlyIdentitySql =
  'delete from identities where user_id = $1 and (provider, provider_id) <> ($2, $3)';

/** Sign-ins at external providers, and the users that they belong to. */
export class ProviderStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  async start(flow: SignInFlow, at: Date): Promise<void> {
    const { challenge = { challenge: '', method: 's256' }, requestToken } = flow;
    await query(this.#sql, startSql, [
      flow.id,
      challenge.challenge,
      challenge.method,
      flow.provider,
      requestToken.token,
      requestToken.secret,
      flow.inviteToken,
      flow.redirectTo,
      flow.linkingUserId ?? null,
      at,
    ]);
  }

  /** Removes a flow and returns it. Of concurrent callbacks one gets it. */
  async take(id: string): Promise<(SignInFlow & { readonly createdAt: Date }) | undefined> {
    const [row] = await query(this.#sql, takeSql, [id]);
    return row && toFlow(id, row);
  }

  async issueCode(code: IssuedCode): Promise<void> {
    await query(this.#sql, issueCodeSql, [
      code.id,
      code.userId,
      code.code,
      code.challenge,
      code.method,
      code.provider,
      code.tokens.accessToken,
      code.tokens.refreshToken,
      code.at,
    ]);
  }

  /** The owner of an identity, and users with one of the verified emails. At most three. */
  async findCandidates({
    provider,
    id,
    verifiedEmails,
    aud,
  }: {
    readonly provider: string;
    readonly id: string;
    readonly verifiedEmails: readonly string[];
    readonly aud: string;
  }): Promise<readonly Candidate[]> {
    const rows = await query(this.#sql, findCandidatesSql, [provider, id, verifiedEmails, aud]);
    return rows.map((row) => ({ user: toUser(row), hasIdentity: row.has_identity === true }));
  }

  /** The first of several forms of an id that is stored; undefined if none is. */
  async findIdentityId(provider: string, ids: readonly string[]): Promise<string | undefined> {
    const [row] = await query(this.#sql, findIdentityIdSql, [provider, ids]);
    return row && String(row.provider_id);
  }

  async touchIdentity({ provider, id }: IdentityKey, at: Date): Promise<void> {
    await query(this.#sql, touchIdentitySql, [provider, id, at]);
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

interface FlowRow {
  readonly provider_type: string;
  readonly code_challenge: string | null;
  readonly code_challenge_method: CodeChallenge['method'] | null;
  readonly provider_access_token: string | null;
  readonly provider_refresh_token: string | null;
  readonly invite_token: string | null;
  readonly referrer: string | null;
  readonly linking_target_id: string | null;
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
    createdAt: r.created_at,
  };
}
