import type { FastifyReply } from 'fastify';
import { handOverSession } from '../flows/pkce.ts';
import { redirectUrl } from '../http/redirects.ts';
import { needsSecondFactor } from '../sessions/assurance.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import { refreshSession } from '../sessions/refresh.ts';
import { sessionFragment } from '../sessions/response.ts';
import type { AssuranceLevel } from '../sessions/store.ts';
import type { Visit } from './visit.ts';

/**
 * Ends a sign-in: asks for the second factor, or hands the session over to the app that sent the
 * browser here, or keeps it for the account page.
 */
export async function completeSignIn(
  visit: Visit,
  issued: IssuedSession,
  aal: AssuranceLevel,
): Promise<FastifyReply> {
  const { context, destination, metadata } = visit;
  const { redirectTo, challenge } = destination;
  const mustVerify = needsSecondFactor(issued.user, { aal });
  if (mustVerify || redirectTo === '') {
    visit.keep(issued);
    return visit.redirect(mustVerify ? 'second-factor' : visit.home);
  }
  // Two holders of a refresh token would end the session.
  visit.signOut();
  const parameters =
    challenge === undefined
      ? { session: sessionFragment(issued) }
      : { query: { code: await handOverSession(context, { ...challenge, ...issued }, metadata) } };
  return visit.reply.header('cache-control', 'no-store').redirect(redirectUrl(redirectTo, parameters), 303);
}

/** Completes the sign-in of a session that the browser already has. */
export async function continueSession(visit: Visit): Promise<FastifyReply> {
  const { context, owner, metadata } = visit;
  if (owner === undefined) return visit.redirect('sign-in');
  const issued = await refreshSession(context, { refreshToken: visit.refreshToken }, metadata);
  return completeSignIn(visit, issued, owner.session.aal);
}
