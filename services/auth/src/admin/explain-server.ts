import { HttpServer } from '@tollgate/kit/http-server';
import { isLocalCaller } from '@tollgate/kit/local-caller';
import type { Logger } from '@tollgate/kit/logger';
import { contentSecurityPolicy } from '@tollgate/kit/operator-page';
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { errors } from '../errors.ts';
import type { CheckExplainer } from '../ext-authz/explain.ts';
import { reportError } from '../http/error-response.ts';
import { renderExplainPage } from './explain-page.ts';
import { readQuestion } from './explain-question.ts';

/** Time for a request to arrive. */
const requestTimeoutMs = 10_000;
/** A few people. */
const maxConnections = 16;
/** Each reads the state of a caller and the counters of limits. */
const maxConcurrent = 4;

interface ExplainServerOptions {
  readonly explainer: Pick<CheckExplainer, 'explain'>;
  readonly logger: Logger;
  readonly port: number;
}

/**
 * `/explain` as a page, and as JSON by `Accept`, on the loopback address. It requires no token: its
 * clients are in the pod, or have the right to forward its ports.
 */
export function buildExplainServer({ explainer, logger, port }: ExplainServerOptions): HttpServer {
  const app = fastify({ requestTimeout: requestTimeoutMs, forceCloseConnections: true });
  app.server.maxConnections = maxConnections;
  app.addHook('onRequest', async (request, reply) => {
    if (isLocalCaller(request.raw)) return;
    return reply
      .code(403)
      .type('text/plain')
      .send('this page is for clients on loopback: use kubectl port-forward\n');
  });
  app.addHook('onSend', async (_request, reply) => {
    reply.headers({
      ...{ 'cache-control': 'no-store', 'content-security-policy': contentSecurityPolicy },
      ...{ 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' },
    });
  });
  app.setErrorHandler((thrown, request, reply) => sendProblem(thrown, { request, reply, logger }));
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).type('text/plain').send('page not found: /explain\n'),
  );
  app.get('/', (_request, reply) => reply.redirect('/explain'));
  let running = 0;
  app.get('/explain', async (request, reply) => {
    const query = readQuery(request);
    if (!wantsJson(request) && !query.has('url')) return sendPage(reply, renderExplainPage(query, undefined));
    const question = readQuestion(query);
    if (running >= maxConcurrent)
      throw errors.over_request_rate_limit({ message: 'Other requests are explained, retry later' });
    running += 1;
    try {
      const explanation = await explainer.explain(question);
      if (wantsJson(request)) return explanation;
      return sendPage(reply, renderExplainPage(query, { explanation }));
    } finally {
      running -= 1;
    }
  });
  return new HttpServer(app, { host: '127.0.0.1', port });
}

/** `URL` does not parse a path without a host. */
function readQuery({ url }: FastifyRequest): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start === -1 ? '' : url.slice(start));
}

const wantsJson = ({ headers }: FastifyRequest): boolean =>
  headers.accept?.includes('application/json') === true;

const sendPage = (reply: FastifyReply, page: string): FastifyReply =>
  reply.type('text/html; charset=utf-8').send(page);

function sendProblem(
  thrown: unknown,
  {
    request,
    reply,
    logger,
  }: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly logger: Logger },
): FastifyReply {
  const { httpStatus, code, message } = reportError(thrown, request, logger);
  reply.code(httpStatus);
  if (wantsJson(request)) return reply.send({ code: httpStatus, error_code: code, msg: message });
  return sendPage(reply, renderExplainPage(readQuery(request), { problem: message }));
}
