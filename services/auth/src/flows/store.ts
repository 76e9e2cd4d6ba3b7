import type { Queryable } from '../db/connection.ts';
import { type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, raw, statement } from '../db/statement.ts';
import type { ProviderTokens } from '../identity-providers/provider.ts';
import { toStoredForm } from '../keys/secrets.ts';
import { toUser, type User, userColumns, userRow } from '../users/user.ts';

/** Value of the claim `amr` of the session. */
export type FlowMethod = 'email/signup' | 'magiclink' | 'recovery' | 'invite' | 'email_change';

/** Provider of a flow whose code is for an existing session, which has the id of the flow. */
export const handover = 'session';
/** GoTrue starts a new session for a code of this method, and answers 500 to unknown methods. */
const handoverMethod = 'password';

export interface FlowRequest extends CodeChallenge {
  /** Absent for an unknown contact: such a flow never gets a code. */
  readonly userId: string | undefined;
  readonly authenticationMethod: FlowMethod;
}

const p = {
  ...parameters(uuid, 'id', 'sessionId'),
  ...parameters(uuid.orNull, 'userId'),
  ...parameters(text, 'challenge', 'method', 'authenticationMethod', 'code'),
  ...parameters(timestamptz, 'at'),
};

const flowRow = {
  flow_id: uuid,
  code_challenge: text.notNull,
  code_challenge_method: text.as<ChallengeMethod>().notNull,
  authentication_method: text,
  provider_type: text,
  provider_access_token: text.orNull,
  provider_refresh_token: text.orNull,
  flow_created_at: timestamptz.notNull,
  auth_code_issued_at: timestamptz.orNull,
};

const start = statement({})`
  insert into flow_state (id, user_id, code_challenge, code_challenge_method, provider_type, authentication_method,
    created_at, updated_at, auth_code, provider_access_token, provider_refresh_token)
  values (${p.id}, ${p.userId}, ${p.challenge}, ${p.method}::code_challenge_method, 'email',
    ${p.authenticationMethod}, ${p.at}, ${p.at}, gen_random_uuid()::text, '', '')`;

// Another code for the session replaces the first.
const handOver = statement({})`
  insert into flow_state (id, user_id, code_challenge, code_challenge_method, provider_type, authentication_method,
    created_at, updated_at, auth_code, auth_code_issued_at, provider_access_token, provider_refresh_token)
  values (${p.sessionId}, ${p.userId}, ${p.challenge}, ${p.method}::code_challenge_method, '${raw(handover)}',
    '${raw(handoverMethod)}', ${p.at}, ${p.at}, ${p.code}, ${p.at}, '', '')
  on conflict (id) do update set code_challenge = excluded.code_challenge, auth_code = excluded.auth_code,
    code_challenge_method = excluded.code_challenge_method, auth_code_issued_at = excluded.auth_code_issued_at`;

// The code is created when the link is followed. Until then the column has a random value that is
// never sent, since GoTrue requires one.
const issueCode = statement({})`
  update flow_state set auth_code = ${p.code}, auth_code_issued_at = ${p.at}, updated_at = ${p.at}
  where id = (
    select id from flow_state where user_id = ${p.userId} and authentication_method = ${p.authenticationMethod} order by created_at desc limit 1
  )
  returning 1`;

const findByCode = statement({ ...userRow, ...flowRow })`
  select ${userColumns}, f.id as flow_id, f.provider_type, f.provider_access_token, f.provider_refresh_token,
    f.code_challenge, f.code_challenge_method, f.authentication_method,
    f.created_at as flow_created_at, f.auth_code_issued_at
  from flow_state f join users u on u.id = f.user_id
  where f.auth_code = ${p.code} and f.code_challenge <> '' and u.deleted_at is null`;

const spend = statement({})`delete from flow_state where id = ${p.id} returning 1`;

/** A flow whose code was issued. */
export interface Flow extends CodeChallenge {
  readonly id: string;
  readonly authenticationMethod: string;
  /** `email`, an external provider, or that of a handover. */
  readonly provider: string;
  readonly providerTokens: ProviderTokens | undefined;
  readonly createdAt: Date;
  readonly codeIssuedAt: Date | undefined;
}

/** PKCE flows, from the challenge to the exchange of the code. */
export class FlowStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  async start(flow: FlowRequest & { readonly id: string; readonly at: Date }): Promise<void> {
    await start.run(this.#sql, flow);
  }

  async handOver(
    flow: CodeChallenge & {
      readonly sessionId: string;
      readonly userId: string;
      readonly code: string;
      readonly at: Date;
    },
  ): Promise<void> {
    await handOver.run(this.#sql, { ...flow, code: toStoredForm(flow.code) });
  }

  /** Sets the code of the latest flow of a user and method. Returns false if there is none. */
  async issueCode(
    flow: { readonly userId: string; readonly authenticationMethod: FlowMethod; readonly code: string },
    at: Date,
  ): Promise<boolean> {
    return issueCode.matches(this.#sql, { ...flow, code: toStoredForm(flow.code), at });
  }

  async findByCode(code: string): Promise<{ readonly flow: Flow; readonly user: User } | undefined> {
    const row = await findByCode.first(this.#sql, { code: toStoredForm(code) });
    return row && { flow: toFlow(row), user: toUser(row) };
  }

  /** Removes a flow. Returns true for one of concurrent requests. */
  async spend(id: string): Promise<boolean> {
    return spend.matches(this.#sql, { id });
  }
}

function toFlow(r: RowOf<typeof flowRow>): Flow {
  return {
    id: r.flow_id,
    challenge: r.code_challenge,
    method: r.code_challenge_method,
    authenticationMethod: r.authentication_method,
    provider: r.provider_type,
    providerTokens: r.provider_access_token
      ? { accessToken: r.provider_access_token, refreshToken: r.provider_refresh_token ?? '' }
      : undefined,
    createdAt: r.flow_created_at,
    codeIssuedAt: r.auth_code_issued_at ?? undefined,
  };
}

/** @see RFC 7636 §4.2 https://www.rfc-editor.org/rfc/rfc7636#section-4.2 */
export type ChallengeMethod = 's256' | 'plain';

export interface CodeChallenge {
  readonly challenge: string;
  readonly method: ChallengeMethod;
}
