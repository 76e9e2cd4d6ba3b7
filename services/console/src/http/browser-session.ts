import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { Cookies, readCookie } from '../sign-in/cookies.ts';
import { pendingTtlMs } from '../sign-in/flow.ts';
import type { Session } from '../sign-in/sessions.ts';
import { requestUrl } from './request-url.ts';
import { regionParameter } from './visit.ts';

/** It is kept in a cookie during a sign-in; browsers refuse those of more than 4 KiB. */
const maxReturnChars = 1024;

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
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { searchParams, pathname, search } = requestUrl(request, context.settings.externalUrl);
  if (searchParams.has(regionParameter)) return reply.code(401).header('hx-refresh', 'true').send();
  const returnTo = pathname + search;
  return startSignIn(context, reply, { returnTo: returnTo.length > maxReturnChars ? '/' : returnTo });
}

/** Sends the browser to the auth server, which sends it back to `returnTo`. */
export async function startSignIn(
  { settings, signIn }: Context,
  reply: FastifyReply,
  { returnTo, isSecond = false }: { readonly returnTo: string; readonly isSecond?: boolean },
): Promise<FastifyReply> {
  const cookies = new Cookies(settings.externalUrl);
  const { url, state, sealed } = await signIn.start(returnTo, isSecond);
  const cookie = cookies.set(cookies.signIn(state), sealed, pendingTtlMs);
  return reply.header('set-cookie', cookie).redirect(url, 303);
}

/** Starts a session with a new id, and returns its cookie. One that the browser had before ends. */
export function startSession(
  { settings, sessions }: Context,
  request: FastifyRequest,
  { person, token }: { readonly person: Session['person']; readonly token: Session['tokens']['token'] },
): string {
  const cookies = new Cookies(settings.externalUrl);
  const earlier = readCookie(request.headers.cookie, cookies.session);
  if (earlier !== undefined) sessions.delete(earlier);
  const session = sessions.create(person, token);
  return cookies.set(cookies.session, session.id);
}
