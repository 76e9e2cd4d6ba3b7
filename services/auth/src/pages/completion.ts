import type { FastifyReply } from 'fastify';
import { handOverSession } from '../flows/pkce.ts';
import { redirectUrl } from '../http/redirects.ts';
import type { ProviderTokens } from '../identity-providers/provider.ts';
import { needsSecondFactor } from '../sessions/assurance.ts';
import { deriveSession, type IssuedSession } from '../sessions/issue.ts';
import { refreshSession } from '../sessions/refresh.ts';
import { sessionFragment } from '../sessions/response.ts';
import { signOut } from '../sessions/sessions.ts';
import { isKnownApp } from './app-target.ts';
import { rememberAccount } from './browser-accounts.ts';
import type { Owner, Visit } from './visit.ts';

/** Ends a sign-in, and continues with its account. */
export async function completeSignIn(visit: Visit, issued: IssuedSession): Promise<FastifyReply> {
  return continueAs(visit, await replaceAccount(visit, issued), issued.providerTokens);
}

/**
 * Signs a user in. An account of another user that is signed in here stays so. An earlier session
 * of the same user ends: the browser has lost its refresh token.
 */
export async function replaceAccount(visit: Visit, issued: IssuedSession): Promise<Owner> {
  const { context, owner: before, metadata } = visit;
  const isSameUser = before?.user.id === issued.user.id;
  if (before !== undefined && !isSameUser) rememberAccount(visit);
  const owner = await visit.signIn(issued);
  // The second factor continues the session.
  if (before !== undefined && isSameUser && before.session.id !== issued.sessionId) {
    await context.store.authentications.move(before.session.id, issued.sessionId);
    await signOut(context, { user: before.user, sessionId: before.session.id, scope: 'local' }, metadata);
  }
  return owner;
}

/**
 * Continues with the account that is signed in here: to the second factor, to the app that sent the
 * browser, or to a page. Without a form, only an app that is known by its address gets a session:
 * for others, the user continues with the form of the account chooser.
 *
 * @throws AppError `over_request_rate_limit`
 */
export async function continueAs(
  visit: Visit,
  owner: Owner,
  providerTokens?: ProviderTokens,
): Promise<FastifyReply> {
  if (needsSecondFactor(owner.user, owner.session)) return visit.redirect('second-factor');
  if (visit.destination.redirectTo === '') return visit.redirect(visit.home);
  if (visit.request.method === 'GET') {
    const { context, destination, metadata } = visit;
    if (!isKnownApp(destination.redirectTo, context.settings)) return visit.redirect('accounts');
    // Forms are limited by their routes.
    if (metadata.client) await context.limiter.enforceRequest('token', metadata.client);
  }
  const issued = await issueForApp(visit, owner);
  return sendToApp(visit, { ...issued, ...(providerTokens && { providerTokens }) });
}

/** The session of an app is its own. The one of the pages stays, for the next app. */
async function issueForApp(visit: Visit, owner: Owner): Promise<IssuedSession> {
  const { context, metadata } = visit;
  if (!context.settings.sessionSinglePerUser) return deriveSession(context, owner, metadata);
  // The browser gives its session up: two holders of a refresh token would end the session.
  const issued = await refreshSession(context, { refreshToken: visit.refreshToken }, metadata);
  visit.signOut();
  return issued;
}

async function sendToApp(visit: Visit, issued: IssuedSession): Promise<FastifyReply> {
  const { context, destination, metadata, reply } = visit;
  const { redirectTo, challenge } = destination;
  const parameters =
    challenge === undefined
      ? { session: sessionFragment(issued) }
      : { query: { code: await handOverSession(context, { ...challenge, ...issued }, metadata) } };
  return reply.header('cache-control', 'no-store').redirect(redirectUrl(redirectTo, parameters), 303);
}
