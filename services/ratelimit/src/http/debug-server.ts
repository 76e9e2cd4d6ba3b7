import { isAppError, toPublicError } from '@tollgate/kit/errors';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import { dumpRules, type RuleSet } from '@tollgate/rules/rule-set';
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { StatsRegistry } from '../stats/registry.ts';
import { statsText } from '../stats/text.ts';
import { type DebugPage, sendText, wantsJson } from './debug-page.ts';
import type { ReadCountersDeps } from './explain-counters.ts';
import { explainPage } from './explain-page.ts';
import { profilingPages } from './profiling-pages.ts';

/** What the debug server takes. */
export interface DebugServerDeps {
  /** The rules in force; undefined until a first set was loaded. */
  readonly rules: () => RuleSet | undefined;
  /** Where the counters of the rules are looked up. */
  readonly counters: ReadCountersDeps;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
}

/** Largest body taken in: a request to explain, which is a few hundred bytes. */
const bodyLimitBytes = 64 * 1024;
/** Time for a request to arrive. */
const requestTimeoutMs = 10_000;
/** A few people look at this port. Each may be slow to read a page, which with 100,000 rules is 9 MB long. */
const maxConnections = 16;

/**
 * The debug port: the rules in force, statistics, what matches a request, profiles. `GET /` lists the pages, as does the 404
 * of every other path. There is no authentication here, so no page shows a setting or a secret.
 */
export function createDebugServer(deps: DebugServerDeps, options: HttpServerOptions): HttpServer {
  const stopping = new AbortController();
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    // A page that is being read is no reason to put off the stop.
    forceCloseConnections: true,
    routerOptions: { ignoreTrailingSlash: true },
    exposeHeadRoutes: false,
  });
  app.server.maxConnections = maxConnections;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.setErrorHandler<FastifyError>((error, request, reply) => sendError(error, request, reply, deps.logger));
  app.addHook('preClose', async () => stopping.abort());

  const pages = debugPages(deps, stopping.signal);
  for (const page of pages) {
    app.get(page.path, page.get);
    if (page.post !== undefined) {
      app.post(page.path, page.post);
    }
  }
  const index = indexOf(pages);
  app.get('/', (_request, reply) => sendText(reply, index));
  app.setNotFoundHandler((_request, reply) => sendText(reply.code(404), `404 page not found\n\n${index}`));
  return new HttpServer(app, options);
}

function debugPages(
  { rules, counters, stats }: DebugServerDeps,
  stopping: AbortSignal,
): readonly DebugPage[] {
  return [
    {
      path: '/rlconfig',
      help: 'the rules in force',
      get: (_request, reply) => sendText(reply, rulesText(rules())),
    },
    {
      path: '/stats',
      help: 'statistics since the start',
      get: (_request, reply) => sendText(reply, statsText(stats)),
    },
    explainPage(rules, counters),
    ...profilingPages(stopping),
  ];
}

function rulesText(rules: RuleSet | undefined): string {
  return rules === undefined
    ? ''
    : dumpRules(rules)
        .map((line) => `${line}\n`)
        .join('');
}

function indexOf(pages: readonly DebugPage[]): string {
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
  // What fastify itself refuses (a body too large) says so in its message; anything else that is no AppError is ours.
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
