import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { toPublicError } from '@tollgate/kit/errors';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import { dumpRules, type RuleSet } from '@tollgate/rules/rule-set';
import type { PeekContext } from '../decision/peek.ts';
import type { StatsRegistry } from '../metrics/registry.ts';
import { formatStats } from '../metrics/text.ts';
import { createTrialReport, formatTrialReport } from '../trial/report.ts';
import { explainPage } from './explain-page.ts';
import { profilingPages } from './profiling-pages.ts';
import {
  type DebugPage,
  type HttpReply,
  type HttpRequest,
  HttpRouter,
  jsonReply,
  textReply,
  wantsJson,
} from './router.ts';

interface DebugServerContext extends PeekContext {
  readonly stats: StatsRegistry;
  readonly buffers: ClientBuffers;
  readonly logger: Logger;
}

/** A request to explain is a few hundred bytes. */
const bodyLimitBytes = 64 * 1024;
/**
 * Few people use this port, and each may be slow to read a page, which is 9 MB with 100,000 rules.
 * The liveness probe uses it, too: a new connection closes an idle one at the bound.
 */
const maxConnections = 16;

/**
 * The debug port: active rules, statistics, explanations, profiles. `GET /` lists the pages, as
 * does the 404 of other paths. It has no authentication, so no page shows a setting or a secret.
 */
export function createDebugServer(context: DebugServerContext, options: HttpServerOptions): HttpServer {
  const stopping = new AbortController();
  const pages = createPages(context, stopping.signal);
  const index = formatIndex(pages);
  const router = new HttpRouter({
    bodyLimitBytes,
    ignoreTrailingSlash: true,
    routes: [
      { path: '/', methods: ['GET'], handle: () => textReply(index) },
      ...pages.flatMap(({ path, get, post }) => [
        { path, methods: ['GET'], handle: get },
        ...(post === undefined ? [] : [{ path, methods: ['POST'], handle: post }]),
      ]),
    ],
    notFound: textReply(`404 page not found\n\n${index}`, 404),
    onError: (error, request) => toErrorReply(error, request, context.logger),
    // A page in transfer must not delay the stop.
    onClose: () => stopping.abort(),
  });
  return new HttpServer(router, options, { maxConnections, buffers: context.buffers });
}

function createPages(context: DebugServerContext, stopping: AbortSignal): readonly DebugPage[] {
  const { stats } = context;
  const { rules } = context.decisions;
  return [
    { path: '/rlconfig', help: 'the active rules', get: () => textReply(formatRules(rules())) },
    {
      path: '/stats',
      help: 'statistics since the start',
      get: () => textReply(formatStats(stats)),
    },
    explainPage(context),
    {
      path: '/trial',
      help: 'requests that the rules on trial would refuse, compared with the active rules',
      get(request) {
        const report = createTrialReport(stats);
        return wantsJson(request) ? jsonReply(report) : textReply(formatTrialReport(report));
      },
    },
    ...profilingPages(stopping),
  ];
}

function formatRules(rules: RuleSet | undefined): string {
  return rules === undefined
    ? ''
    : dumpRules(rules)
        .map((line) => `${line}\n`)
        .join('');
}

function formatIndex(pages: readonly DebugPage[]): string {
  return pages
    .map(({ path, help }) => `${path}: ${help}\n`)
    .sort()
    .join('');
}

function toErrorReply(
  error: unknown,
  request: Pick<HttpRequest, 'url' | 'headers'>,
  logger: Logger,
): HttpReply {
  const { code, httpStatus, message } = toPublicError(error);
  if (httpStatus === 500) {
    logger.error({ err: error, path: request.url }, 'debug page failed');
  }
  return wantsJson(request)
    ? jsonReply({ code, message }, httpStatus)
    : textReply(`${message}\n`, httpStatus);
}
