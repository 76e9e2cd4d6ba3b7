import { isAppError } from '@tollgate/kit/errors';
import { type Html, html } from '@tollgate/kit/html';
import { OAuthError, TokenUnavailableError } from '@tollgate/oauth2-client';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { Permission } from '../scopes.ts';
import { ServiceError } from '../services/session-clients.ts';
import { checkForm } from '../sign-in/csrf.ts';
import type { Session } from '../sign-in/sessions.ts';
import { findSession, redirectToSignIn } from './browser-session.ts';
import { type DownloadRoute, sendDownload } from './downloads.ts';
import { sendProblem } from './problems.ts';
import { requestUrl } from './request-url.ts';
import { sendPage } from './responses.ts';
import { regionParameter, Visit } from './visit.ts';

/** A page. */
export interface View {
  readonly title: string;
  readonly content: Html;
  /** Default 200. */
  readonly status?: number;
}

/** GET of a page, or of one of its regions. */
interface PageRoute {
  /** Has parameters as `:id`. */
  readonly path: string;
  /** Default: that of the area. */
  readonly permission?: Permission;
  readonly view: (visit: Visit) => Promise<View> | View;
}

/** POST of a form. */
interface ActionRoute {
  readonly path: string;
  readonly permission: Permission;
  /** Returns the path to go to; or a page, for an answer and for what is shown only once. */
  readonly submit: (visit: Visit, form: URLSearchParams) => Promise<string | View>;
}

/** A part of the console: an entry of the menu, with its pages and actions. */
export interface Area {
  readonly name: string;
  readonly title: string;
  /** Its first page. */
  readonly path: string;
  /** Heading in the menu. */
  readonly group: 'Traffic' | 'Access' | 'Operation';
  readonly permission: Permission;
  readonly pages: readonly PageRoute[];
  readonly actions: readonly ActionRoute[];
  readonly downloads?: readonly DownloadRoute[];
}

/** Adds the routes of all areas. */
export function addAreas(app: FastifyInstance, context: Context, areas: readonly Area[]): void {
  for (const { name, permission: ofArea, pages, actions, downloads = [] } of areas) {
    const config = { area: name };
    const options = { config, exposeHeadRoute: false };
    for (const page of pages)
      app.get(page.path, options, (request, reply) =>
        show(context, page.permission ?? ofArea, { request, reply }, (visit) => sendView(visit, page, reply)),
      );
    for (const { path, permission, open } of downloads)
      app.get(path, options, (request, reply) =>
        show(context, permission, { request, reply }, async (visit) =>
          sendDownload(context.logger, reply, await open(visit)),
        ),
      );
    for (const action of actions)
      app.post(action.path, { config }, (request, reply) => submitForm(context, action, { request, reply }));
  }
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Sends a page or a file to a person who may see it. */
async function show(
  context: Context,
  permission: Permission,
  { request, reply }: Exchange,
  send: (visit: Visit) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const session = findSession(context, request);
  if (session === undefined) return redirectToSignIn(context, request, reply);
  try {
    const visit = await openVisit(context, session, request);
    if (!visit.can(permission)) throw errors.missing_scope();
    return await send(visit);
  } catch (error) {
    if (endsSession(error)) {
      context.sessions.delete(session.id);
      return redirectToSignIn(context, request, reply);
    }
    const url = requestUrl(request, context.settings.externalUrl);
    url.searchParams.delete(regionParameter);
    return sendProblem(context, reply, { error, session, url });
  }
}

async function sendView(visit: Visit, page: PageRoute, reply: FastifyReply): Promise<FastifyReply> {
  const { context, session, url } = visit;
  const view = await page.view(visit);
  reply.header('server-timing', visit.services.timer.header());
  if (visit.region === undefined) return sendPage(context, reply, { status: 200, ...view, session, url });
  const region = visit.findRegion(visit.region);
  if (region === undefined) throw errors.page_not_found();
  return reply.type('text/html; charset=utf-8').send(html`${region}`.toString());
}

async function submitForm(context: Context, action: ActionRoute, exchange: Exchange): Promise<FastifyReply> {
  const { request, reply } = exchange;
  const session = findSession(context, request);
  const url = requestUrl(request, context.settings.externalUrl);
  try {
    if (session === undefined) throw errors.form_rejected();
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    const { externalUrl } = context.settings;
    checkForm(session, form, { headers: request.headers, externalUrl });
    const visit = await openVisit(context, session, request);
    if (!visit.can(action.permission)) throw errors.missing_scope();
    const result = await action.submit(visit, form);
    if (typeof result === 'string') return reply.redirect(externalUrl + result, 303);
    return sendPage(context, reply, { status: 200, ...result, session, url });
  } catch (error) {
    if (session === undefined || !endsSession(error))
      return sendProblem(context, reply, { error, session, url });
    context.sessions.delete(session.id);
    return sendProblem(context, reply, { error: errors.form_rejected(), session: undefined, url });
  }
}

async function openVisit(context: Context, session: Session, request: FastifyRequest): Promise<Visit> {
  try {
    return await Visit.open(context, session, request);
  } catch (error) {
    if (isAppError(error, 'not_administrator')) context.sessions.delete(session.id);
    if (isAppError(error) || error instanceof ServiceError || endsSession(error)) throw error;
    throw errors.sign_in_unavailable({ cause: error });
  }
}

/** Codes with which the auth server refuses the token of a person whose session it has ended. */
const endedSession = new Set(['bad_jwt', 'session_expired', 'session_not_found', 'user_banned']);

/** Whether the person has to sign in again: the token is refused, or cannot be refreshed. */
function endsSession(error: unknown): boolean {
  if (isAppError(error, 'session_ended')) return true;
  if (error instanceof OAuthError) return !error.retryable;
  if (error instanceof ServiceError)
    return (error.status === 401 || error.status === 403) && endedSession.has(error.code);
  return error instanceof TokenUnavailableError;
}
