import { isAppError, toPublicError } from '@tollgate/kit/errors';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import { dumpRules, type RuleSet } from '@tollgate/rules/rule-set';
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { type DebugPage, sendText, wantsJson } from './debug-page.ts';
import type { CounterContext } from './explain-counters.ts';
import { explainPage } from './explain-page.ts';
import { profilingPages } from './profiling-pages.ts';

interface DebugServerContext extends CounterContext {
  /** The active rules; undefined until a first set is loaded. */
  readonly rules: () => RuleSet | undefined;
  /** The text of `/stats`. */
  readonly formatStats: () => string | Promise<string>;
  readonly logger: Logger;
}

/** A request to explain is a few hundred bytes. */
const bodyLimitBytes = 64 * 1024;
const requestTimeoutMs = 10_000;
/**
 * Few people use this port, and each may be slow to read a page, which is 9 MB with 100,000 rules.
 */
const maxConnections = 16;

/**
 * The debug port: active rules, statistics, explanations, profiles. `GET /` lists the pages, as
 * does the 404 of other paths. It has no authentication, so no page shows a setting or a secret.
 */
export function createDebugServer(context: DebugServerContext, options: HttpServerOptions): HttpServer {
  const stopping = new AbortController();
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    // A page in transfer must not delay the stop.
    forceCloseConnections: true,
    routerOptions: { ignoreTrailingSlash: true },
    exposeHeadRoutes: false,
  });
  app.server.maxConnections = maxConnections;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.setErrorHandler<FastifyError>((error, request, reply) =>
    sendError(error, request, reply, context.logger),
  );
  app.addHook('preClose', async () => stopping.abort());

  const pages = createPages(context, stopping.signal);
  for (const page of pages) {
    app.get(page.path, page.get);
    if (page.post !== undefined) {
      app.post(page.path, page.post);
    }
  }
  const index = formatIndex(pages);
  app.get('/', (_request, reply) => sendText(reply, index));
  app.setNotFoundHandler((_request, reply) => sendText(reply.code(404), `404 page not found\n\n${index}`));
  return new HttpServer(app, options);
}

function createPages(context: DebugServerContext, stopping: AbortSignal): readonly DebugPage[] {
  const { rules, formatStats } = context;
  return [
    {
      path: '/rlconfig',
      help: 'the active rules',
      get: (_request, reply) => sendText(reply, formatRules(rules())),
    },
    {
      path: '/stats',
      help: 'statistics since the start',
      get: async (_request, reply) => sendText(reply, await formatStats()),
    },
    explainPage(rules, context),
    ...profilingPages(stopping),
  ];
}

function formatRules(rules: RuleSet | undefined): string {
  return rules === undefined
    ? ''
    : dumpRules(rules)
        .map((line) => `${line}\n`)
        .join('');
}

function formatIndex(pages: readonly DebugPage[]): string {
  return pages
    .map(({ path, help }) => `${path}: ${help}\n`)
    .sort()
    .join('');
}

function sendError(
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): FastifyReply {
  // Fastify's own errors (a body too large) have a public message; other errors that are not
  // AppErrors are bugs.
  const refused = !isAppError(error) && (error.statusCode ?? 500) < 500;
  const { code, httpStatus, message } = refused
    ? { code: error.code, httpStatus: error.statusCode ?? 400, message: error.message }
    : toPublicError(error);
  if (httpStatus === 500) {
    logger.error({ err: error, path: request.url }, 'debug page failed');
  }
  reply.code(httpStatus);
  return wantsJson(request) ? reply.send({ code, message }) : sendText(reply, `${message}\n`);
}
