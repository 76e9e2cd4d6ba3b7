import { toJson } from '@bufbuild/protobuf';
import type { Health } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import { RateLimitResponseSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { type FastifyReply, fastify } from 'fastify';
import type { Decide } from '../../decide/create-decider.ts';
import { Code } from '../../domain/decision.ts';
import { toMessage } from '../decision-message.ts';
import { createHttpServer, type HttpServer, type HttpServerOptions } from './http-server.ts';
import { readJsonRequest } from './json-request.ts';

/** What the API server takes. */
export interface ApiServerDeps {
  readonly decide: Decide;
  readonly health: Health;
  readonly logger: Logger;
}

/** Largest body taken in; a request is a few hundred bytes. */
const bodyLimitBytes = 1024 * 1024;

/**
 * The HTTP surface: `POST /json` decides, `GET /healthcheck` tells the health.
 *
 * `/json` takes and gives proto3 JSON: 200 when allowed, 429 when over a limit. Whatever goes wrong is answered with
 * 400, as envoyproxy/ratelimit does; the reason is in the log.
 */
export function createApiServer(deps: ApiServerDeps, options: HttpServerOptions): HttpServer {
  const app = fastify({ bodyLimit: bodyLimitBytes, forceCloseConnections: 'idle' });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) => {
    deps.logger.warn({ err: error }, 'json request refused');
    return badRequest(reply);
  });

  app.get('/healthcheck', (_request, reply) =>
    deps.health.isHealthy() ? reply.type('text/plain; charset=utf-8').send('OK') : reply.code(500).send(),
  );

  app.post('/json', async ({ body, headers }, reply) => {
    const decision = await deps.decide(readJsonRequest(body), {
      header: (name) => headers[name]?.toString(),
    });
    const message = toJson(RateLimitResponseSchema, toMessage(decision));
    return reply.code(decision.overallCode === Code.OVER_LIMIT ? 429 : 200).send(message);
  });

  return createHttpServer(app, options);
}

function badRequest(reply: FastifyReply) {
  return reply
    .code(400)
    .type('text/plain; charset=utf-8')
    .header('x-content-type-options', 'nosniff')
    .send('Bad Request\n');
}
