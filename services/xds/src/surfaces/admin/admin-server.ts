import { createHttpServer, type HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
} from 'fastify';
import type { Registry } from 'prom-client';
import { type AdminState, notReadyReason, rowOf } from './admin-state.ts';
import { debugPage } from './debug-page.ts';
import { pageOf, readPageQuery } from './page-of.ts';
import { contentSecurityPolicy } from './page-style.ts';
import { servedDomain, servedSnapshot } from './snapshot-page.ts';

/** What the admin server takes. */
export interface AdminServerDeps extends AdminState {
  readonly registry: Registry;
  readonly logger: Logger;
}

/** Time for a request to arrive. */
const requestTimeoutMs = 10_000;
/** Probes, a scraper, and a few people. */
const maxConnections = 64;
/** Items on a page of JSON, unless `limit` says otherwise. */
const defaultObjects = 100;
const defaultDomains = 20;

/**
 * The admin port: `/healthz` and `/readyz` for probes, `/metrics`, a page for people and the same as JSON. Nobody is asked
 * who they are here, and everything is read only.
 */
export function createAdminServer(deps: AdminServerDeps, options: HttpServerOptions): HttpServer {
  const app = fastify({ requestTimeout: requestTimeoutMs, forceCloseConnections: true });
  app.server.maxConnections = maxConnections;
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff').header('cache-control', 'no-store');
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => sendError(error, request, reply, deps.logger));
  app.setNotFoundHandler((_request, reply) =>
    sendText(reply.code(404), 'no such page: / lists what there is\n'),
  );
  addProbes(app, deps);
  addPages(app, deps);
  return createHttpServer(app, options);
}

function addProbes(app: FastifyInstance, deps: AdminServerDeps): void {
  app.get('/healthz', (_request, reply) => sendText(reply, 'ok\n'));
  app.get('/readyz', (_request, reply) => {
    const reason = notReadyReason(deps);
    return reason === undefined ? sendText(reply, 'ok\n') : sendText(reply.code(503), `${reason}\n`);
  });
  app.get('/metrics', async (_request, reply) =>
    reply.type(deps.registry.contentType).send(await deps.registry.metrics()),
  );
}

function addPages(app: FastifyInstance, deps: AdminServerDeps): void {
  app.get('/', (request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', contentSecurityPolicy)
      .send(debugPage(deps, { find: queryOf(request).get('find') ?? '' })),
  );

  app.get('/objects', (request) => {
    const state = deps.pipeline.state();
    const page = pageOf(state.verdicts, readPageQuery(queryOf(request), defaultObjects));
    return { ...page, items: page.items.map((verdict) => rowOf(verdict, state)) };
  });

  app.get('/snapshot', async (request, reply) => {
    const query = queryOf(request);
    const domain = query.get('domain');
    if (domain === null) return await servedSnapshot(deps.snapshots, readPageQuery(query, defaultDomains));
    const served = await servedDomain(deps.snapshots, domain);
    return served ?? reply.code(404).send({ message: `domain '${domain}' is not served` });
  });
}

/** Of a URL without a host, which `URL` does not take. */
function queryOf({ url }: FastifyRequest): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start === -1 ? '' : url.slice(start));
}

function sendText(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('text/plain; charset=utf-8').send(text);
}

function sendError(
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): FastifyReply {
  // What fastify itself refuses says so in its message; anything else is ours.
  const status = error.statusCode ?? 500;
  if (status < 500) return sendText(reply.code(status), `${error.message}\n`);
  logger.error({ err: error, path: request.url }, 'admin page failed');
  return sendText(reply.code(500), 'internal error\n');
}
