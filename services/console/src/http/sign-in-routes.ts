import { html } from '@tollgate/kit/html';
import type { FastifyInstance } from 'fastify';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { assertAdministrator } from '../services/administrator.ts';
import { ServiceError, SessionClients } from '../services/session-clients.ts';
import { Cookies, readCookie } from '../sign-in/cookies.ts';
import { checkForm } from '../sign-in/csrf.ts';
import type { Session } from '../sign-in/sessions.ts';
import { findSession, startSession, startSignIn } from './browser-session.ts';
import { sendProblem } from './problems.ts';
import { requestUrl } from './request-url.ts';
import { sendPage } from './responses.ts';

/** `/callback` of the sign-in, and `/sign-out`. */
export function addSignInRoutes(app: FastifyInstance, context: Context): void {
  const { settings, signIn, metrics, sessions, logger, outages } = context;
  const cookies = new Cookies(settings.externalUrl);

  app.get('/callback', { exposeHeadRoute: false }, async (request, reply) => {
    const { searchParams: query } = requestUrl(request, settings.externalUrl);
    const name = cookies.signIn(query.get('state') ?? '');
    const sealed = readCookie(request.headers.cookie, name);
    // Another tab has completed a sign-in, or the page was loaded again.
    if (sealed === undefined && findSession(context, request) !== undefined)
      return reply.redirect(`${settings.externalUrl}/`, 303);
    reply.header('set-cookie', cookies.clear(name));
    try {
      const completed = await signIn.complete(query, sealed ?? '');
      const token = () => Promise.resolve(completed.token.token);
      const isAccepted = await assertAdministrator(new SessionClients({ settings, outages, token })).then(
        () => true,
        (error: unknown) => {
          if (isRefusedToken(error) && !completed.isSecond) return false;
          throw error;
        },
      );
      // It has expired since: a new sign-in needs no question.
      if (!isAccepted)
        return await startSignIn(context, reply, { returnTo: completed.returnTo, isSecond: true });
      reply.header('set-cookie', startSession(context, request, completed));
      metrics.signIns.inc({ result: 'succeeded' });
      logger.info({ user_id: completed.person.id }, 'signed in');
      return reply.redirect(`${settings.externalUrl}${completed.returnTo}`, 303);
    } catch (error) {
      metrics.signIns.inc({ result: 'failed' });
      logger.warn({ err: error }, 'failed to sign in');
      // Its URL has a code: the link leads to the first page.
      const target = new URL('/', settings.externalUrl);
      return sendProblem(context, reply, { error, session: undefined, url: target });
    }
  });

  app.post('/sign-out', async (request, reply) => {
    const session = findSession(context, request);
    const url = new URL('/', settings.externalUrl);
    try {
      if (session !== undefined) {
        const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
        checkForm(session, form, { headers: request.headers, externalUrl: settings.externalUrl });
        sessions.delete(session.id);
        await revoke(context, session);
      }
    } catch (error) {
      return sendProblem(context, reply, { error, session, url });
    }
    return reply.header('set-cookie', cookies.clear(cookies.session)).redirect('/signed-out', 303);
  });

  app.get('/signed-out', { exposeHeadRoute: false }, (_request, reply) => {
    const content = html`<p>You are signed out of the console. At the auth server you may still be signed in.</p>
<div class="actions"><a class="button primary" href="/">Sign in again</a></div>`;
    const url = new URL('/signed-out', settings.externalUrl);
    return sendPage(context, reply, { session: undefined, url, title: 'Signed out', content, status: 200 });
  });

  app.setNotFoundHandler((request, reply) => {
    const url = new URL('/', settings.externalUrl);
    return sendProblem(context, reply, {
      error: errors.page_not_found(),
      session: findSession(context, request),
      url,
    });
  });
}

function isRefusedToken(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'bad_jwt';
}

/** The session has ended anyway: a failure is only logged. */
async function revoke({ logger }: Context, { tokens }: Session): Promise<void> {
  try {
    const { token } = tokens;
    await token.revoke({
      tokenTypeHint: token.refreshToken === undefined ? 'access_token' : 'refresh_token',
    });
  } catch (error) {
    logger.warn({ err: error }, 'failed to revoke the tokens of a session');
  }
}
