import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { Cookies, readCookie } from '../sign-in/cookies.ts';
import { randomId, type Session } from '../sign-in/sessions.ts';
import { regionParameter } from './visit.ts';

/** The session of the browser; undefined before the sign-in, and after the session has ended. */
export function findSession({ sessions, settings }: Context, request: FastifyRequest): Session | undefined {
  const id = readCookie(request.headers.cookie, new Cookies(settings.externalUrl).session);
  return id === undefined ? undefined : sessions.find(id);
}

/**
 * Sends the browser to the auth server, which sends it back to this URL. Scripts that update a
 * region cannot follow: they load the whole page.
 */
export async function redirectToSignIn(
  { settings, signIn }: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { searchParams } = new URL(request.url, settings.externalUrl);
  if (searchParams.has(regionParameter)) return reply.code(401).header('hx-refresh', 'true').send();
  const cookies = new Cookies(settings.externalUrl);
  // Kept by all tabs of a browser, which may sign in at the same time.
  const browserId = readCookie(request.headers.cookie, cookies.browser) || randomId();
  const url = await signIn.start(browserId, request.url);
  return reply.header('set-cookie', cookies.set(cookies.browser, browserId)).redirect(url, 303);
}

/** Starts a session with a new id. One that the browser had before ends. */
export function startSession(
  { settings, sessions }: Context,
  request: FastifyRequest,
  { person, token }: { readonly person: Session['person']; readonly token: Session['tokens']['token'] },
): { readonly headers: readonly string[] } {
  const cookies = new Cookies(settings.externalUrl);
  const earlier = readCookie(request.headers.cookie, cookies.session);
  if (earlier !== undefined) sessions.delete(earlier);
  const session = sessions.create(person, token);
  return { headers: [cookies.set(cookies.session, session.id), cookies.clear(cookies.browser)] };
}
