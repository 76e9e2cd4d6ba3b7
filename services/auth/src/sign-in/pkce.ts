import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from '../context.ts';
import { type Queryable, query, type Row } from '../db/query.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { isBanned, type User } from '../users/user.ts';
import { toUser, userColumns } from '../users/user-row.ts';

/** How a code challenge is made of its verifier. @see RFC 7636 §4.2 https://www.rfc-editor.org/rfc/rfc7636#section-4.2 */
type ChallengeMethod = 's256' | 'plain';

/** What a client keeps the verifier of: who presents that verifier is the one who began. */
export interface CodeChallenge {
  readonly challenge: string;
  readonly method: ChallengeMethod;
}

/** How tokens get back to the client: in the fragment of a redirect, or for a code that takes a verifier to exchange. */
export type FlowType = 'implicit' | 'pkce';

/** The members of a body that ask for PKCE. */
export interface ChallengeMembers {
  readonly code_challenge?: string | undefined;
  readonly code_challenge_method?: string | undefined;
}

/** A challenge, none, or what is wrong with it. */
export type ParsedChallenge =
  | { readonly ok: true; readonly challenge: CodeChallenge | undefined }
  | { readonly ok: false; readonly message: string };

/** Bounds and letters of RFC 7636 §4.2. */
const minChallengeChars = 43;
const maxChallengeChars = 128;
const challengeForm = /^[a-zA-Z0-9._~-]*$/;

/** Begins the hash of a token whose link answers a code. */
export const pkcePrefix = 'pkce_';

/** How long a code that was issued may be exchanged, and a flow without one may last: 5 minutes. */
export const flowLifeMs = 300_000;

/** Reads what a body says of PKCE; an empty text counts as absent. */
export function parseChallenge(members: ChallengeMembers): ParsedChallenge {
  const { code_challenge: challenge = '', code_challenge_method: methodText = '' } = members;
  if (challenge === '' && methodText === '') return { ok: true, challenge: undefined };
  if (challenge === '' || methodText === '')
    return refuse('PKCE takes both code_challenge and code_challenge_method, or neither of them');
  const method = methodText.toLowerCase();
  if (method !== 's256' && method !== 'plain') return refuse('code_challenge_method has to be s256 or plain');
  if (challenge.length < minChallengeChars || challenge.length > maxChallengeChars)
    return refuse(`code_challenge has to have ${minChallengeChars} to ${maxChallengeChars} characters`);
  if (!challengeForm.test(challenge))
    return refuse('code_challenge may have letters, digits and the characters - . _ ~ only');
  return { ok: true, challenge: { challenge, method } };
}

/** The flow that a challenge asks for. */
export function flowOf(challenge: CodeChallenge | undefined): FlowType {
  return challenge === undefined ? 'implicit' : 'pkce';
}

/** May the code still be exchanged? Its time begins when it is issued: until then the link has waited in a mailbox. */
export function isFlowOver(
  flow: { readonly createdAt: Date; readonly codeIssuedAt: Date | undefined },
  nowMs: number,
): boolean {
  return (flow.codeIssuedAt ?? flow.createdAt).getTime() + flowLifeMs <= nowMs;
}

function refuse(message: string): ParsedChallenge {
  return { ok: false, message };
}

/** What a body says of PKCE; undefined when it says nothing. @throws AppError `validation_failed`. */
export function readCodeChallenge(members: ChallengeMembers): CodeChallenge | undefined {
  const parsed = parseChallenge(members);
  if (!parsed.ok) throw errors.validation_failed({ message: parsed.message });
  return parsed.challenge;
}

/** What a flow ends with: the value of `amr` of its session. */
export type FlowMethod = 'email/signup' | 'magiclink' | 'recovery' | 'invite' | 'email_change';

/** A flow that begins. */
interface NewFlow extends CodeChallenge {
  readonly id: string;
  /** Absent where nobody is known by the address that was given: such a flow never gets a code. */
  readonly userId: string | undefined;
  readonly authenticationMethod: FlowMethod;
  readonly at: Date;
}

/** A flow whose code has been issued. */
interface Flow extends CodeChallenge {
  readonly id: string;
  readonly authenticationMethod: string;
  readonly createdAt: Date;
  readonly codeIssuedAt: Date | undefined;
}

/** PKCE flows: from the challenge to the code that is exchanged for tokens. */
export interface FlowStore {
  start(flow: NewFlow): Promise<void>;
  /** Gives the latest flow of a user and method its code. Answers false when there is none that waits for one. */
  issueCode(
    of: { readonly userId: string; readonly authenticationMethod: FlowMethod; readonly code: string },
    at: Date,
  ): Promise<boolean>;
  /** The flow of a code and its user, in one statement. */
  findByCode(code: string): Promise<{ readonly flow: Flow; readonly user: User } | undefined>;
  /** Ends a flow. Answers false when somebody else did so first: only one may go on. */
  spend(id: string): Promise<boolean>;
}

/** A flow that a client asks for. */
interface FlowRequest extends CodeChallenge {
  /** Absent where nobody is known by the address that was given. */
  readonly userId: string | undefined;
  /** What the session will say of how it came about. */
  readonly authenticationMethod: FlowMethod;
}

/** Keeps a challenge until the link that was sent is followed. Answers the id of the flow. */
export type StartFlow = (request: FlowRequest, metadata: RequestMetadata) => Promise<string>;

/** Creates {@link StartFlow}: one statement. */
export function createStartFlow({ store, random }: Context): StartFlow {
  return async (request, metadata) => {
    const id = random.uuid();
    await store.flows.start({ id, ...request, at: new Date(metadata.nowMs) });
    return id;
  };
}

/** Is it the verifier of that challenge? @see RFC 7636 §4.6 https://www.rfc-editor.org/rfc/rfc7636#section-4.6 */
export function matchesChallenge(verifier: string, { challenge, method }: CodeChallenge): boolean {
  const made = method === 'plain' ? verifier : createHash('sha256').update(verifier).digest('base64url');
  // Hashes of equal length: what takes longer says nothing of where they differ.
  return timingSafeEqual(digest(made), digest(challenge));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** A code from a redirect, and the verifier that only the client that began can know. */
interface CodeExchange {
  readonly authCode?: string | undefined;
  readonly codeVerifier?: string | undefined;
}

/** Exchanges the code of a PKCE flow for a session. */
export type ExchangeCode = (exchange: CodeExchange, metadata: RequestMetadata) => Promise<IssuedSession>;

/**
 * Creates {@link ExchangeCode}: a code is good for one session, however many ask at once. A wrong verifier spends nothing: who has
 * found a code in a log must not take it from the client.
 */
export function createExchangeCode(deps: Context): ExchangeCode {
  const { store } = deps;
  return async ({ authCode = '', codeVerifier = '' }, metadata) => {
    if (authCode === '' || codeVerifier === '')
      throw errors.validation_failed({
        message: 'invalid request: both auth code and code verifier should be non-empty',
      });
    const found = await store.flows.findByCode(authCode);
    if (found === undefined) throw errors.flow_state_not_found();
    const { flow, user } = found;
    if (isFlowOver(flow, metadata.nowMs)) throw errors.flow_state_expired();
    if (!matchesChallenge(codeVerifier, flow)) throw errors.bad_code_verifier();
    if (isBanned(user, metadata.nowMs)) throw errors.user_banned();
    const signIn = { user, method: flow.authenticationMethod, traits: { provider_type: 'email' } };
    // All or nothing: a code that is spent has signed somebody in.
    return store.transaction(async (within) => {
      if (!(await within.flows.spend(flow.id))) throw errors.flow_state_not_found();
      return startSession({ ...deps, store: within }, signIn, metadata);
    });
  };
}

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
      return row && { flow: flowsFlowOf(row), user: toUser(row) };
    },
    async spend(id) {
      return (await query(sql, spend, [id])).length > 0;
    },
  };
}

function flowsFlowOf(row: Row): Flow {
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
