import type { FastifyReply } from 'fastify';
import { auditEntry } from '../db/audit-log.ts';
import { redirectUrl } from '../http/redirects.ts';
import { type IssuedSession, sessionFragment } from '../sessions/issue.ts';
import { refreshSession } from '../sessions/refresh.ts';
import { type FlowMethod, startFlow } from '../sign-in/pkce.ts';
import { needsSecondFactor } from './page.ts';
import type { Visit } from './visit.ts';

interface SignedIn {
  readonly aal: string;
  /** Value of the claim `amr` of a session that a code is exchanged for. */
  readonly method: FlowMethod;
}

/**
 * Ends a sign-in: asks for the second factor, or hands the session over to the app that sent the
 * browser here, or keeps it for the account page.
 */
export async function completeSignIn(
  visit: Visit,
  issued: IssuedSession,
  { aal, method }: SignedIn,
): Promise<FastifyReply> {
  const { redirectTo, challenge } = visit.destination;
  const mustVerify = needsSecondFactor(issued.user, { aal });
  if (mustVerify || redirectTo === '') {
    visit.keep(issued);
    return visit.redirect(mustVerify ? 'second-factor' : 'account');
  }
  // The app has its own copy of the session: two holders of a refresh token would end it.
  visit.signOut();
  const url = redirectUrl(
    redirectTo,
    challenge === undefined
      ? { fragment: sessionFragment(issued) }
      : { query: { code: await issueCode(visit, issued, method) } },
  );
  return visit.reply.header('cache-control', 'no-store').redirect(url, 303);
}

/** Replaces a session by a code, which the app exchanges for its own session. */
async function issueCode(visit: Visit, { user, sessionId }: IssuedSession, method: FlowMethod) {
  const { context, destination, metadata } = visit;
  const { store, random } = context;
  const flow = { userId: user.id, authenticationMethod: method, code: random.uuid() };
  if (destination.challenge !== undefined)
    await startFlow(context, { ...destination.challenge, ...flow }, metadata);
  await store.flows.issueCode(flow, new Date(metadata.nowMs));
  await store.sessions.end('local', { userId: user.id, sessionId }, auditEntry(user, 'logout', { metadata }));
  return flow.code;
}

const flowMethods = ['recovery', 'oauth', 'password'] as const;

/** Completes the sign-in of a session that the browser already has. */
export async function continueSession(visit: Visit): Promise<FastifyReply> {
  const { context, owner, metadata } = visit;
  if (owner === undefined) return visit.redirect('sign-in');
  const issued = await refreshSession(context, visit.refreshToken, metadata);
  const { aal, methods } = owner.session;
  const method = flowMethods.find((known) => methods.some((used) => used.method === known));
  return completeSignIn(visit, issued, { aal, method: method ?? 'password' });
}
