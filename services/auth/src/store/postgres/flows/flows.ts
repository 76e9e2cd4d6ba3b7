import type { ChallengeMethod } from '../../../domain/pkce.ts';
import type { Flow, FlowStore } from '../../../ports/flow-store.ts';
import { type Queryable, query, type Row } from '../query.ts';
import { userColumns, userOf } from '../users/user-columns.ts';

const start = `
  insert into flow_state (id, user_id, code_challenge, code_challenge_method, provider_type, authentication_method,
    created_at, updated_at, auth_code, provider_access_token, provider_refresh_token)
  values ($1, $2, $3, $4::code_challenge_method, 'email', $5, $6, $6, gen_random_uuid()::text, '', '')`;

// The code is made when the link is followed. Until then the column has a random one that is
// never sent, since GoTrue requires a value.
const issueCode = `
  update flow_state set auth_code = $3, auth_code_issued_at = $4, updated_at = $4
  where id = (
    select id from flow_state where user_id = $1 and authentication_method = $2 order by created_at desc limit 1
  )
  returning 1`;

const findByCode = `
  select ${userColumns}, f.id as flow_id, f.code_challenge, f.code_challenge_method, f.authentication_method,
    f.created_at as flow_created_at, f.auth_code_issued_at
  from flow_state f join users u on u.id = f.user_id
  where f.auth_code = $1 and u.deleted_at is null`;

const spend = 'delete from flow_state where id = $1 returning 1';

interface FlowRow {
  readonly flow_id: string;
  readonly code_challenge: string;
  readonly code_challenge_method: ChallengeMethod;
  readonly authentication_method: string;
  readonly flow_created_at: Date;
  readonly auth_code_issued_at: Date | null;
}

/** {@link FlowStore} over PostgreSQL. */
export function flows(sql: Queryable): FlowStore {
  return {
    async start({ id, userId, challenge, method, authenticationMethod, at }) {
      await query(sql, start, [id, userId ?? null, challenge, method, authenticationMethod, at]);
    },
    async issueCode({ userId, authenticationMethod, code }, at) {
      return (await query(sql, issueCode, [userId, authenticationMethod, code, at])).length > 0;
    },
    async findByCode(code) {
      const [row] = await query(sql, findByCode, [code]);
      return row && { flow: flowOf(row), user: userOf(row) };
    },
    async spend(id) {
      return (await query(sql, spend, [id])).length > 0;
    },
  };
}

function flowOf(row: Row): Flow {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as FlowRow;
  return {
    id: r.flow_id,
    challenge: r.code_challenge,
    method: r.code_challenge_method,
    authenticationMethod: r.authentication_method,
    createdAt: r.flow_created_at,
    codeIssuedAt: r.auth_code_issued_at ?? undefined,
  };
}
