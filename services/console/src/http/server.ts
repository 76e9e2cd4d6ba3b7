import type { Health } from '@tollgate/kit/health';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import { type FastifyError, type FastifyInstance, fastify } from 'fastify';
import type { Registry } from 'prom-client';
import type { Context } from '../context.ts';
import type { Assets } from '../ui/assets.ts';
import { sendProblem } from './problems.ts';
import { requestUrl } from './request-url.ts';
import { securityHeaders } from './responses.ts';
import { type Area, addAreas } from './routes.ts';
import { addSignInRoutes } from './sign-in-routes.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Area of the console, for metrics. */
    readonly area?: string;
  }
}

/** Time for a request to arrive. */
const requestTimeoutMs = 10_000;

/** A few hundred people with several tabs. */
const maxConnections = 2000;

/** Longest form: the YAML of a policy is at most 1 MiB. */
const bodyLimit = 2 * 1024 * 1024;

/** Names of objects and domains have at most 253 characters. */
const maxParamChars = 512;

/** The server of the pages. */
export function buildServer(
  context: Context,
  areas: readonly Area[],
  options: HttpServerOptions,
): HttpServer {
  const { settings, metrics } = context;
  const app = fastify({
    ...{ requestTimeout: requestTimeoutMs, forceCloseConnections: true, bodyLimit },
    routerOptions: { maxParamLength: maxParamChars },
  });
  app.server.maxConnections = maxConnections;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  const headers = securityHeaders(settings);
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(headers);
  });
  app.addHook('onResponse', async (request, reply) => {
    const { area } = request.routeOptions.config;
    if (area !== undefined) metrics.requests.observe({ area }, reply.elapsedTime / 1000);
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    // Below 500 the error is fastify's, and its message is public.
    if (error.statusCode !== undefined && error.statusCode < 500)
      return reply.code(error.statusCode).type('text/plain; charset=utf-8').send(`${error.message}\n`);
    const url = requestUrl(request, settings.externalUrl);
    return sendProblem(context, reply, { error, session: undefined, url });
  });
  addAssetRoutes(app, context.assets);
  addSignInRoutes(app, context);
  addAreas(app, context, areas);
  return new HttpServer(app, options);
}

function addAssetRoutes(app: FastifyInstance, assets: Assets): void {
  for (const asset of assets.all()) {
    app.get(asset.url, { exposeHeadRoute: false }, (request, reply) => {
      const isGzip = /\bgzip\b/.test(String(request.headers['accept-encoding']));
      // The URL has the version.
      reply
        .type(asset.type)
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('vary', 'accept-encoding');
      return isGzip ? reply.header('content-encoding', 'gzip').send(asset.gzipped) : reply.send(asset.body);
    });
  }
}

interface AdminState {
  readonly registry: Registry;
  readonly health: Health;
}

/** `/healthz`, `/readyz` and `/metrics`. */
export function buildAdminServer({ registry, health }: AdminState, options: HttpServerOptions): HttpServer {
  const app = fastify({ requestTimeout: requestTimeoutMs, forceCloseConnections: true });
  const text = 'text/plain; charset=utf-8';
  app.get('/healthz', (_request, reply) => reply.type(text).send('ok\n'));
  app.get('/readyz', (_request, reply) =>
    health.isHealthy() ? reply.type(text).send('ok\n') : reply.code(503).type(text).send('stopping\n'),
  );
  app.get('/metrics', async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  );
  return new HttpServer(app, options);
}
