import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import { contentSecurityPolicy } from '@tollgate/kit/operator-page';
import { runInSlices, type Steps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import { getTrialDocument, type RuleDocument } from '@tollgate/rules/rule-document';
import { decodeMessage } from '@tollgate/rules/rule-message';
import { dumpRules } from '@tollgate/rules/rule-set';
import {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
} from 'fastify';
import type { Snapshot, SnapshotResource } from '../catalog/snapshot.ts';
import { addAdminApi } from '../operator-api/api.ts';
import { type PageQuery, paginate, parsePageQuery } from '../paging.ts';
import { notReadyReason, policyProblem, type ServerState } from '../server-state.ts';
import { type AdminAccess, createApiGuard, createPageGuard } from './access.ts';
import { renderDebugPage, toObjectRow } from './page.ts';

/** Time for a request to arrive. */
const requestTimeoutMs = 10_000;

/** Probes, a scraper, and a few people. */
const maxConnections = 64;

/** Characters of the name of an object in a path. */
const maxNameLength = 253;

/** Default page sizes of the JSON endpoints. */
const defaultObjects = 100;
const defaultDomains = 20;

interface AdminServerOptions extends HttpServerOptions, AdminAccess {}

/**
 * `/healthz`, `/readyz` and `/metrics` for all clients; a debug page, its JSON and the admin API.
 * Read only.
 */
export function buildAdminServer(
  state: ServerState,
  { token, verifier, ...options }: AdminServerOptions,
): HttpServer {
  const app = fastify({
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: true,
    // A misspelled parameter is refused.
    ajv: { customOptions: { removeAdditional: false } },
    routerOptions: { maxParamLength: maxNameLength },
  });
  app.server.maxConnections = maxConnections;
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff').header('cache-control', 'no-store');
  });
  app.setErrorHandler<FastifyError>((error, request, reply) =>
    sendError(error, request, reply, state.logger),
  );
  app.setNotFoundHandler((_request, reply) =>
    sendText(reply.code(404), 'page not found: / lists all pages\n'),
  );
  addProbes(app, state);
  app.register(async (pages) => {
    pages.addHook('onRequest', createPageGuard(token));
    addPages(pages, state);
  });
  addAdminApi(app, state, createApiGuard({ token, verifier }));
  return new HttpServer(app, options);
}

function addProbes(app: FastifyInstance, state: ServerState): void {
  app.get('/healthz', (_request, reply) => sendText(reply, 'ok\n'));
  app.get('/readyz', (_request, reply) => {
    const reason = notReadyReason(state);
    if (reason !== undefined) return sendText(reply.code(503), `${reason}\n`);
    const isFollowed = state.policies === undefined || state.policies.state().outages.length === 0;
    const problem = isFollowed ? '' : `, except for access policies: ${policyProblem(state.policies)}`;
    return sendText(reply, `ok${problem}\n`);
  });
  app.get('/metrics', async (_request, reply) =>
    reply.type(state.registry.contentType).send(await state.registry.metrics()),
  );
}

function addPages(app: FastifyInstance, { pipeline, snapshots, ...state }: ServerState): void {
  app.get('/', (request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', contentSecurityPolicy)
      .send(renderDebugPage({ pipeline, snapshots, ...state }, parseQuery(request).get('find') ?? '')),
  );

  app.get('/objects', (request) => {
    const current = pipeline.state();
    const page = paginate(current.results, parsePageQuery(parseQuery(request), defaultObjects));
    return { ...page, items: page.items.map((result) => toObjectRow(result, current)) };
  });

  app.get('/snapshot', async (request, reply) => {
    const query = parseQuery(request);
    const domain = query.get('domain');
    const snapshot = snapshots.currentOf(query.get('class') ?? undefined);
    if (domain === null) return await describeSnapshot(snapshot, parsePageQuery(query, defaultDomains));
    const described = await describeDomain(snapshot, domain);
    return described ?? reply.code(404).send({ message: `domain '${domain}' is not served` });
  });
}

/** `URL` does not parse a path without a host. */
function parseQuery({ url }: FastifyRequest): URLSearchParams {
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
  // Below 500 the error is fastify's, and its message is public.
  const status = error.statusCode ?? 500;
  if (status < 500) return sendText(reply.code(status), `${error.message}\n`);
  logger.error({ err: error, path: request.url }, 'failed to serve an admin page');
  return sendText(reply.code(500), 'internal error\n');
}

/** A domain as limiters receive it. */
interface DomainDescription {
  readonly domain: string;
  readonly version: string;
  /** One line per limit. */
  readonly rules: readonly string[];
  /** Number of limits, when not all are listed. */
  readonly of?: number;
}

/** Limits on one page, of all its domains: about 2 MB. */
const maxRules = 20_000;

/** Domains on one page: each is compiled for it. */
const maxDomains = 100;

/** Longest time without yielding to streams. */
const sliceMs = 5;

/** Undefined when the domain is not served. */
async function describeDomain(
  snapshot: Snapshot | undefined,
  domain: string,
): Promise<DomainDescription | undefined> {
  const resource = snapshot?.resources.get(domain);
  return resource === undefined ? undefined : await runInSlices(describe(resource, maxRules), { sliceMs });
}

async function describeSnapshot(snapshot: Snapshot | undefined, { after, limit }: PageQuery) {
  const page = paginate(snapshot?.resources ?? [], { after, limit: Math.min(limit, maxDomains) });
  const domains = await runInSlices(describeAll(page.items), { sliceMs });
  return { version: snapshot?.version ?? null, total: page.total, domains, next: page.next };
}

function* describeAll(resources: readonly SnapshotResource[]): Steps<readonly DomainDescription[]> {
  const domains: DomainDescription[] = [];
  let left = maxRules;
  for (const resource of resources) {
    const domain = yield* describe(resource, left);
    domains.push(domain);
    left = Math.max(0, left - domain.rules.length);
    yield;
  }
  return domains;
}

function* describe(resource: SnapshotResource, most: number): Steps<DomainDescription> {
  const { name: domain, version } = resource;
  const rules = yield* dumpResource(resource);
  return rules.length <= most
    ? { domain, version, rules }
    : { domain, version, rules: rules.slice(0, most), of: rules.length };
}

/**
 * The limits of a resource in the format of a limiter's own debug page, read from the encoded
 * bytes. Rules without a limit are marked, so that they do not look like a limit of 0.
 */
function* dumpResource({ any }: SnapshotResource): Steps<readonly string[]> {
  const document = yield* decodeMessage(fromBinary(AnySchema, any).value);
  const trial = getTrialDocument(document);
  const lines = yield* dumpDocument(document);
  if (trial === undefined) return lines;
  const linesOnTrial = yield* dumpDocument(trial);
  return [...lines, ...linesOnTrial.map((line) => `${line}, on trial`)];
}

function* dumpDocument(document: RuleDocument): Steps<readonly string[]> {
  const compiled = yield* compileRules([document], { mergeDomains: false });
  yield;
  return compiled.ok
    ? dumpRules(compiled.rules, { unlimited: 'unlimited' })
    : compiled.problems.map((problem) => problem.message);
}
