import { toJsonString } from '@bufbuild/protobuf';
import { isAppError } from '@tollgate/kit/errors';
import type { Health } from '@tollgate/kit/health';
import type { HttpServerLimits } from '@tollgate/kit/http-connections';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import { RateLimitResponseSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Decide } from '../decision/decide.ts';
import { parseJsonRequest } from '../decision/wire/request.ts';
import { Code, toMessage } from '../decision/wire/response.ts';
import { type HttpReply, type HttpRequest, HttpRouter, textReply } from './router.ts';

interface ApiServerContext {
  readonly decide: Decide;
  readonly health: Health;
  readonly logger: Logger;
}

/** A request is a few hundred bytes. */
const bodyLimitBytes = 1024 * 1024;

/**
 * The HTTP API: `/json` decides, `GET /healthcheck` returns the health.
 *
 * `/json` accepts and returns proto3 JSON: 200 when allowed, 429 when over a limit. As in
 * envoyproxy/ratelimit, invalid requests and failures of the store are 400, and neither the method
 * nor the content type matters. Only methods with a body have one read, so GET is always a bad
 * request. The body and the log have the reason.
 */
export function createApiServer(
  { decide, health, logger }: ApiServerContext,
  options: HttpServerOptions,
  limits: HttpServerLimits = {},
): HttpServer {
  const failures = new FailureLog({ logger, message: 'json request refused' });
  const router = new HttpRouter({
    bodyLimitBytes,
    routes: [
      {
        path: '/healthcheck',
        methods: ['GET', 'HEAD'],
        handle: () => (health.isHealthy() ? { headers: plainText, body: 'OK' } : { status: 500 }),
      },
      { path: '/json', handle: (request) => decideJson(decide, request) },
    ],
    notFound: textReply('404 page not found\n', 404),
    onError(error) {
      failures.log(error);
      return describeFailure(error);
    },
  });
  return new HttpServer(router, options, limits);
}

const plainText = { 'content-type': 'text/plain; charset=utf-8' };

/** Reasons repeat parts of the request, which may be long. */
const maxReasonLength = 500;

function describeFailure(error: unknown): HttpReply {
  if (!isAppError(error)) {
    return textReply(
      'Internal Server Error: the decision failed, the log of the service has the reason\n',
      500,
    );
  }
  return textReply(`Bad Request: ${error.message.slice(0, maxReasonLength)}\n`, 400);
}

async function decideJson(decide: Decide, { body, headers }: HttpRequest): Promise<HttpReply> {
  const decision = await decide(parseJsonRequest(body), { header: (name) => headers[name]?.toString() });
  return {
    status: decision.overallCode === Code.OVER_LIMIT ? 429 : 200,
    headers: { 'content-type': 'application/json' },
    body: toJsonString(RateLimitResponseSchema, toMessage(decision)),
  };
}
