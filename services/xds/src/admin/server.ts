import type { Health } from '@tollgate/kit/health';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
} from 'fastify';
import type { Registry } from 'prom-client';
import type { ClientRegistry } from '../ads/limiters.ts';
import type { Verdict } from '../catalog/accepted.ts';
import type { Pipeline, PipelineState } from '../catalog/pipeline.ts';
import type { SnapshotStore } from '../catalog/snapshot.ts';
import type { Condition } from '../status/conditions.ts';
import { contentSecurityPolicy, pageOf, readPageQuery } from './html.ts';
import { debugPage } from './page.ts';
import { servedDomain, servedSnapshot } from './snapshot.ts';

/** What the pages show. */
export interface AdminState {
  readonly pipeline: Pick<Pipeline, 'state' | 'notReady'>;
  readonly snapshots: SnapshotStore;
  readonly clients: ClientRegistry;
  readonly health: Health;
  /** Unix time. */
  readonly nowMs: () => number;
  /** What the source is called: `kubernetes`, `folder`. */
  readonly sourceName: string;
}

/** Why the service is not ready, for people; undefined when it is. */
export function notReadyReason({ pipeline, health }: AdminState): string | undefined {
  if (health.isHealthy()) return undefined;
  const failing = Object.entries(health.report()).filter(([, healthy]) => !healthy);
  return pipeline.notReady() ?? `not ready: ${failing.map(([name]) => name).join(', ')}`;
}

/** One object as the pages show it. */
export interface ObjectRow {
  readonly id: string;
  /** File and number of the document; the id, where there is no file. */
  readonly label: string;
  readonly domain: string | undefined;
  readonly generation: number;
  /** The generation whose rules are in force. */
  readonly inForce: number | undefined;
  readonly rules: number;
  readonly accepted: Condition;
  /** Undefined in the first moments of an object. */
  readonly programmed: Condition | undefined;
  readonly limiters: { readonly connected: number; readonly acknowledged: number } | undefined;
}

/** An object with all that is known of it. */
export function rowOf(verdict: Verdict, { statuses }: PipelineState): ObjectRow {
  const { id, label, domain, generation, inForce, rules, accepted } = verdict;
  const status = statuses.get(id);
  return {
    id,
    label,
    domain,
    generation,
    inForce,
    rules,
    accepted,
    programmed: status?.programmed,
    limiters: status?.limiters,
  };
}

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
  return new HttpServer(app, options);
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
