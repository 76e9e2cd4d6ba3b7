import { toJsonString } from '@bufbuild/protobuf';
import type { Health } from '@tollgate/kit/health';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import { RateLimitResponseSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { parseJsonRequest } from '../ratelimit/request.ts';
import { Code, toMessage } from '../ratelimit/response.ts';
import type { Decide } from '../ratelimit/service.ts';

interface ApiServerContext {
  readonly decide: Decide;
  readonly health: Health;
  readonly logger: Logger;
}

/** A request is a few hundred bytes. */
const bodyLimitBytes = 1024 * 1024;

const requestTimeoutMs = 10_000;

/**
 * The HTTP API: `/json` decides, `GET /healthcheck` returns the health.
 *
 * `/json` accepts and returns proto3 JSON: 200 when allowed, 429 when over a limit. As in
 * envoyproxy/ratelimit, all errors are 400, with the reason in the log, and neither the method nor
 * the content type matters. Only methods with a body have one read, so GET is always a bad request.
 */
export function createApiServer(context: ApiServerContext, options: HttpServerOptions): HttpServer {
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: 'idle',
  });
  const failures = new FailureLog({ logger: context.logger, message: 'json request refused' });
  readBodiesOfAnyType(app);
  app.setErrorHandler((error, _request, reply) => {
    failures.log(error);
    return sendText(reply.code(400), 'Bad Request\n');
  });
  app.setNotFoundHandler((_request, reply) => sendText(reply.code(404), '404 page not found\n'));

  app.get('/healthcheck', (_request, reply) =>
    context.health.isHealthy() ? reply.type('text/plain; charset=utf-8').send('OK') : reply.code(500).send(),
  );

  app.all('/json', async ({ body, headers }, reply) => {
    const decision = await context.decide(parseJsonRequest(body), {
      header: (name) => headers[name]?.toString(),
    });
    const message = toJsonString(RateLimitResponseSchema, toMessage(decision));
    reply.code(decision.overallCode === Code.OVER_LIMIT ? 429 : 200);
    // As bytes, because Fastify adds a charset to text, which this media type does not have.
    return reply.type('application/json').send(Buffer.from(message));
  });

  return new HttpServer(app, options);
}

/** Passes every body as bytes, whatever its content type, even if that is invalid. */
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
