import { createHash, timingSafeEqual } from 'node:crypto';
import type { AppError } from '@tollgate/kit/errors';
import type { Queryable } from '../db/connection.ts';
import { type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, raw, statement } from '../db/statement.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { ProviderTokens } from '../identity-providers/provider.ts';
import { randomDigestedToken, toStoredForm } from '../keys/secrets.ts';
import type { SessionsContext } from '../sessions/issue.ts';
import { type IssuedSession, prepareSession, storeSession } from '../sessions/issue.ts';
import { reissueSession } from '../sessions/refresh.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { isBanned, toUser, type User, userColumns, userRow } from '../users/user.ts';

export type FlowsContext = SessionsContext & { readonly store: { readonly flows: FlowStore } };

/** @see RFC 7636 §4.2 https://www.rfc-editor.org/rfc/rfc7636#section-4.2 */
type ChallengeMethod = 's256' | 'plain';

export interface CodeChallenge {
  readonly challenge: string;
  readonly method: ChallengeMethod;
}

/**
 * How tokens reach the client: in the fragment of a redirect, or in exchange for a code and a
 * verifier.
 */
export type FlowType = 'implicit' | 'pkce';

/** The flow that a request asks for. */
export function flowType(challenge: CodeChallenge | undefined): FlowType {
  return challenge === undefined ? 'implicit' : 'pkce';
}

/** Prefix of the token of a link that leads to a code. */
export const pkcePrefix = 'pkce_';

/** RFC 7636 §4.2. */
const minChallengeChars = 43;
const maxChallengeChars = 128;
const challengeForm = /^[a-zA-Z0-9._~-]*$/;

/**
 * Parses the PKCE members of a body; undefined if both are absent or empty.
 *
 * @throws AppError `validation_failed`
 */
export function parseCodeChallenge({
  code_challenge: challenge = '',
  code_challenge_method: methodText = '',
}: {
  readonly code_challenge?: string | undefined;
  readonly code_challenge_method?: string | undefined;
}): CodeChallenge | undefined {
  if (challenge === '' && methodText === '') return undefined;
  if (challenge === '' || methodText === '')
    throw invalid('PKCE takes both code_challenge and code_challenge_method, or neither of them');
  const method = methodText.toLowerCase();
  if (method !== 's256' && method !== 'plain') throw invalid('code_challenge_method has to be s256 or plain');
  if (challenge.length < minChallengeChars || challenge.length > maxChallengeChars)
    throw invalid(`code_challenge has to have ${minChallengeChars} to ${maxChallengeChars} characters`);
  if (!challengeForm.test(challenge))
    throw invalid('code_challenge may have letters, digits and the characters - . _ ~ only');
  return { challenge, method };
}

function invalid(message: string) {
  return errors.validation_failed({ message });
}

/** The challenge of a verifier, by the method `s256`. @see RFC 7636 §4.2 */
export function toChallenge(verifier: string): CodeChallenge {
  return { challenge: createHash('sha256').update(verifier).digest('base64url'), method: 's256' };
}

/** @see RFC 7636 §4.6 https://www.rfc-editor.org/rfc/rfc7636#section-4.6 */
export function matchesChallenge(verifier: string, { challenge, method }: CodeChallenge): boolean {
  const computed = method === 'plain' ? verifier : toChallenge(verifier).challenge;
  // Digests have equal lengths, and their comparison time does not depend on where the texts
  // differ.
  return timingSafeEqual(digest(computed), digest(challenge));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Lifetime of an issued code, and of a flow without one. */
export const flowLifeMs = 300_000;

/**
 * Whether the code has expired. Its lifetime starts when it is issued, that is when the link is
 * followed.
 */
export function isFlowExpired(
  flow: { readonly createdAt: Date; readonly codeIssuedAt: Date | undefined },
  nowMs: number,
): boolean {
  return (flow.codeIssuedAt ?? flow.createdAt).getTime() + flowLifeMs <= nowMs;
}

/** Value of the claim `amr` of the session. */
export type FlowMethod = 'email/signup' | 'magiclink' | 'recovery' | 'invite' | 'email_change';

/** Provider of a flow whose code is for an existing session, which has the id of the flow. */
const handover = 'session';
/** GoTrue starts a new session for a code of this method, and answers 500 to unknown methods. */
const handoverMethod = 'password';

/** Makes a code that is exchanged for a session. GoTrue's are UUIDs. */
export function makeAuthCode({ random, settings }: FlowsContext): string {
  return settings.tokenDigests ? randomDigestedToken(random) : random.uuid();
}

interface FlowRequest extends CodeChallenge {
  /** Absent for an unknown contact: such a flow never gets a code. */
  readonly userId: string | undefined;
  readonly authenticationMethod: FlowMethod;
}

/** Stores a challenge until the link is followed. */
export async function startFlow(
  { store, random }: FlowsContext,
  request: FlowRequest,
  { nowMs }: RequestMetadata,
): Promise<void> {
  await store.flows.start({ id: random.uuid(), ...request, at: new Date(nowMs) });
}

/**
 * Issues a code for an existing session, whose refresh token the caller gives up. The client that
 * exchanges it continues the session at its assurance level.
 */
export async function handOverSession(
  context: FlowsContext,
  { user, sessionId, ...challenge }: CodeChallenge & Pick<IssuedSession, 'user' | 'sessionId'>,
  { nowMs }: RequestMetadata,
): Promise<string> {
  const code = makeAuthCode(context);
  await context.store.flows.handOver({ ...challenge, sessionId, userId: user.id, code, at: new Date(nowMs) });
  return code;
}

/**
 * Exchanges the code of a flow for a session. Of concurrent requests one succeeds. A wrong verifier
 * does not spend the code: an attacker who finds it in a log must not invalidate it.
 */
export async function exchangeCode(
  context: FlowsContext,
  {
    authCode = '',
    codeVerifier = '',
  }: {
    readonly authCode?: string | undefined;
    readonly codeVerifier?: string | undefined;
  },
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  if (authCode === '' || codeVerifier === '')
    throw invalid('invalid request: both auth code and code verifier should be non-empty');
  const found = await context.store.flows.findByCode(authCode);
  if (found === undefined) throw errors.flow_state_not_found();
  const { flow, user } = found;
  const unusable = findUnusable(found, { codeVerifier, nowMs: metadata.nowMs });
  if (unusable !== undefined) {
    recordFailedSignIn(context, user, { method: 'pkce', reason: unusable.code }, metadata);
    throw unusable;
  }
  if (flow.provider === handover) {
    if (!(await context.store.flows.spend(flow.id))) throw errors.flow_state_not_found();
    return reissueSession(context, flow.id, metadata);
  }
  const signIn = { user, method: flow.authenticationMethod, traits: { provider_type: flow.provider } };
  const prepared = await prepareSession(context, signIn, metadata);
  // In one transaction: a failed sign-in does not spend the code.
  return context.store.transaction(async (store) => {
    if (!(await store.flows.spend(flow.id))) throw errors.flow_state_not_found();
    const session = await storeSession({ ...context, store }, prepared, metadata);
    return { ...session, ...(flow.providerTokens && { providerTokens: flow.providerTokens }) };
  });
}

function findUnusable(
  { flow, user }: { readonly flow: Flow; readonly user: User },
  { codeVerifier, nowMs }: { readonly codeVerifier: string; readonly nowMs: number },
): AppError | undefined {
  if (isFlowExpired(flow, nowMs)) return errors.flow_state_expired();
  if (!matchesChallenge(codeVerifier, flow)) return errors.bad_code_verifier();
  return isBanned(user, nowMs) ? errors.user_banned() : undefined;
}

/** The user of a code, which is not spent. Undefined for an invalid code. */
export async function findCodeOwner(
  { store }: FlowsContext,
  { authCode, codeVerifier }: { readonly authCode: string; readonly codeVerifier: string },
): Promise<User | undefined> {
  const found = await store.flows.findByCode(authCode);
  return found !== undefined && matchesChallenge(codeVerifier, found.flow) ? found.user : undefined;
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
interface Flow extends CodeChallenge {
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
