import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { Api } from '../http/api.ts';
import { limitedClient } from '../http/request-metadata.ts';
import { MemberGuard } from '../http/unknown-members.ts';
import type { ClientLimit } from '../limits/table.ts';
import { authorizeAdmin, requiredScope } from './admin-access.ts';
import { verifyCaptcha } from './captcha.ts';
import type { Context } from './context.ts';

/**
 * Answers 504 when a request takes longer, hooks included. `handlerTimeout` of Fastify 5.12 does
 * not apply once the body of a request has been read.
 */
export function addDeadline(
  api: Api,
  { maxRequestDurationMs }: Pick<Settings, 'maxRequestDurationMs'>,
): void {
  api.addHook('onRequest', (_request, reply, done) => {
    const timer = setTimeout(() => {
      if (!reply.sent) void reply.send(errors.request_timeout());
    }, maxRequestDurationMs);
    reply.raw.once('close', () => clearTimeout(timer));
    done();
  });
}

/**
 * Rejects unknown paths, and URLs with NUL, which PostgreSQL does not support, before the body is
 * read.
 */
export function addUrlChecks(api: Api): void {
  api.addHook('onRequest', (request, _reply, done) => {
    if (request.url.includes('%00'))
      done(errors.validation_failed({ message: 'The URL must not contain the character NUL (%00)' }));
    else if (request.is404) done(errors.not_found());
    else done();
  });
}

declare module 'fastify' {
  // The library's way to type `config` of a route.
  interface FastifyContextConfig {
    /** The limit of the route, or a function that selects one per request. */
    limiter?: ClientLimit | ((request: FastifyRequest) => ClientLimit);
    /** Whether requests need a CAPTCHA token, if CAPTCHA is enabled. */
    captcha?: (request: FastifyRequest) => boolean;
  }
}

type RequestHook = (request: FastifyRequest) => Promise<void>;

/**
 * Adds rate limits to routes with `config.limiter`, CAPTCHA to routes with `config.captcha`, and
 * the checks of the token and of member names to admin routes.
 * Other routes have no hook that they would pass.
 */
export function guardRoutes(api: Api, context: Context): void {
  const limit = (request: FastifyRequest, limiter: ClientLimit) =>
    context.limiter.enforceRequest(limiter, limitedClient(request, context.settings));
  const memberGuard = new MemberGuard(context.logger);
  api.decorateRequest('limitedAdmin', undefined);
  api.addHook('onRoute', (route) => {
    const limiter = route.config?.limiter;
    const onRequest: RequestHook[] = [];
    // The limit applies before the body is read, unless it depends on the body.
    if (typeof limiter === 'string') onRequest.push((request) => limit(request, limiter));
    const preHandler: RequestHook[] = [];
    if (typeof limiter === 'function') preHandler.push((request) => limit(request, limiter(request)));
    const needsCaptcha = context.settings.captchaEnabled ? route.config?.captcha : undefined;
    // CAPTCHAs are verified after the rate limit, which also bounds the requests to the provider.
    if (needsCaptcha !== undefined)
      preHandler.push(async (request) => {
        if (needsCaptcha(request)) await verifyCaptcha(request, context);
      });
    if (isAdminRoute(route.url)) {
      const scope = requiredScope(route);
      onRequest.push((request) => authorizeAdmin(request, context, scope));
      preHandler.push(memberGuard.forRoute(route));
    }
    if (preHandler.length > 0) route.preHandler = [...preHandler, ...[route.preHandler ?? []].flat()];
    if (onRequest.length > 0) route.onRequest = [...onRequest, ...[route.onRequest ?? []].flat()];
  });
}

function isAdminRoute(pattern: string): boolean {
  return pattern === '/invite' || pattern.startsWith('/admin/');
}
