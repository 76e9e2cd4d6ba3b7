import { toJsonString } from '@bufbuild/protobuf';
import type { Health } from '@tollgate/kit/health';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import { RateLimitResponseSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { readJsonRequest, toMessage } from '../ratelimit/messages.ts';
import { Code } from '../ratelimit/response.ts';
import type { Decide } from '../ratelimit/service.ts';

/** What the API server takes. */
export interface ApiServerDeps {
  readonly decide: Decide;
  readonly health: Health;
  readonly logger: Logger;
}

/** Largest body taken in; a request is a few hundred bytes. */
const bodyLimitBytes = 1024 * 1024;

/** How long a request may take to arrive. */
const requestTimeoutMs = 10_000;

/**
 * The HTTP surface: `/json` decides, `GET /healthcheck` tells the health.
 *
 * `/json` takes and gives proto3 JSON: 200 when allowed, 429 when over a limit. Whatever goes wrong is answered with
 * 400, as envoyproxy/ratelimit does; the reason is in the log. As there, neither the method nor the content type
 * matters; but a body is read only of methods that have one, so that GET is always a bad request.
 */
export function createApiServer(deps: ApiServerDeps, options: HttpServerOptions): HttpServer {
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: 'idle',
  });
  const failures = new FailureLog({ logger: deps.logger, message: 'json request refused' });
  readBodiesOfAnyType(app);
  app.setErrorHandler((error, _request, reply) => {
    failures.log(error);
    return sendText(reply.code(400), 'Bad Request\n');
  });
  app.setNotFoundHandler((_request, reply) => sendText(reply.code(404), '404 page not found\n'));

  app.get('/healthcheck', (_request, reply) =>
    deps.health.isHealthy() ? reply.type('text/plain; charset=utf-8').send('OK') : reply.code(500).send(),
  );

  app.all('/json', async ({ body, headers }, reply) => {
    const decision = await deps.decide(readJsonRequest(body), {
      header: (name) => headers[name]?.toString(),
    });
    const message = toJsonString(RateLimitResponseSchema, toMessage(decision));
    reply.code(decision.overallCode === Code.OVER_LIMIT ? 429 : 200);
    // As bytes: to a text Fastify adds a charset, which this media type does not have.
    return reply.type('application/json').send(Buffer.from(message));
  });

  return new HttpServer(app, options);
}

/** Hands over every body as bytes, whatever its content type, and even if that is no content type at all. */
function readBodiesOfAnyType(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    headers['content-type'] = undefined;
    done();
  });
}

function sendText(reply: FastifyReply, text: string) {
  return reply.type('text/plain; charset=utf-8').header('x-content-type-options', 'nosniff').send(text);
}
