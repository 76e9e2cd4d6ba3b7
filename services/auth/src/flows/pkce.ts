import { createHash, timingSafeEqual } from 'node:crypto';
import type { AppError } from '@tollgate/kit/errors';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { randomDigestedToken } from '../keys/secrets.ts';
import type { SessionsContext } from '../sessions/context.ts';
import { type IssuedSession, prepareSession, storeSession } from '../sessions/issue.ts';
import { reissueSession } from '../sessions/refresh.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { isBanned, type User } from '../users/user.ts';
import { type CodeChallenge, type Flow, type FlowRequest, type FlowStore, handover } from './store.ts';

export type FlowsContext = SessionsContext & { readonly store: { readonly flows: FlowStore } };

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

/** Makes a code that is exchanged for a session. GoTrue's are UUIDs. */
export function makeAuthCode({ random, settings }: Pick<SessionsContext, 'random' | 'settings'>): string {
  return settings.tokenDigests ? randomDigestedToken(random) : random.uuid();
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
  const signIn = {
    ...{ user, method: flow.authenticationMethod, traits: { provider_type: flow.provider } },
    // The authentication at the provider was noted with this id.
    sessionId: flow.id,
  };
  const prepared = await prepareSession(context, signIn, metadata);
  // In one transaction: a failed sign-in does not spend the code.
  return context.store.transaction(async (store) => {
    if (!(await store.flows.spend(flow.id))) throw errors.flow_state_not_found();
    const session = await storeSession({ ...context, store }, prepared, metadata);
    if (context.settings.oauthServerEnabled) await store.authentications.keep(flow.id);
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
