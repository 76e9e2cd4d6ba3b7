import cors from '@fastify/cors';
import { compareText } from '@tollgate/kit/text';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Settings, settingsSpec } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { bucketQuota, enforceQuota, type Quota } from '../messages/quotas.ts';
import type { Api } from './api.ts';
import { verifyAdmin } from './authenticate.ts';
import { verifyCaptcha } from './captcha.ts';
import { canIdentifyClients, hasUntrustedProxy, rateLimitKey, requestMetadata } from './request-metadata.ts';

const allowedHeaders = [
  'Accept',
  'Authorization',
  'Content-Type',
  'X-Client-IP',
  'X-Client-Info',
  'X-JWT-AUD',
  'x-use-cookie',
  'apikey',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
  'X-Svc-Session-Tag',
];
const exposedHeaders = [
  'X-Total-Count',
  'Link',
  'Retry-After',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
];

/** Allows all origins: callers are authenticated by tokens, not by cookies. */
export function addCors(api: Api, { corsAllowedHeaders }: Pick<Settings, 'corsAllowedHeaders'>): void {
  void api.register(cors, {
    origin: '*',
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [...allowedHeaders, ...corsAllowedHeaders],
    exposedHeaders,
    credentials: true,
    strictPreflight: false,
  });
}

/** Methods that get a 405 if the path does not support them. OPTIONS is left to CORS. */
const methods = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'];

/**
 * Records the routes that are added from now on. The returned function must be called after the
 * last one; it adds routes that reject other methods with 405 and `Allow`.
 *
 * @see RFC 9110 §15.5.6 https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6
 */
export function trackRoutes(api: Api): () => void {
  const known = new Map<string, Set<string>>();
  let watching = true;
  api.addHook('onRoute', ({ url, method }) => {
    if (!watching) return;
    const allowed = known.get(url) ?? new Set<string>();
    known.set(url, allowed);
    for (const one of [method].flat()) allowed.add(one);
  });
  return () => {
    watching = false;
    for (const [url, allowed] of known) {
      const rejected = methods.filter((method) => !allowed.has(method));
      if (rejected.length === 0) continue;
      const reject = rejectMethod([...allowed].toSorted(compareText));
      api.route({
        url,
        method: rejected,
        exposeHeadRoute: false,
        schema: { hide: true },
        // Before the body is read.
        onRequest: reject,
        handler: reject,
      });
    }
  };
}

function rejectMethod(allowed: readonly string[]) {
  return async (_request: FastifyRequest, reply: FastifyReply): Promise<never> => {
    reply.header('allow', allowed.join(', '));
    throw errors.method_not_allowed();
  };
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

/** Rate limits per client address. */
export type Limiter = 'otp' | 'verify' | 'token' | 'anonymous' | 'factor';

declare module 'fastify' {
  // The library's way to type `config` of a route.
  interface FastifyContextConfig {
    /** The limit of the route, or a function that selects one per request. */
    limiter?: Limiter | ((request: FastifyRequest) => Limiter);
    /** Whether requests need a CAPTCHA token, if CAPTCHA is enabled. */
    captcha?: (request: FastifyRequest) => boolean;
  }
}

const minuteMs = 60_000;

type RequestHook = (request: FastifyRequest) => Promise<void>;

/**
 * Adds rate limits to routes with `config.limiter`, CAPTCHA to routes with `config.captcha`, and
 * the check of the token to admin routes.
 * Other routes have no hook that they would pass.
 */
export function guardRoutes(api: Api, context: Context): void {
  const limit = canIdentifyClients(context.settings)
    ? requestLimits(context)
    : untrustedProxyWarning(context);
  api.addHook('onRoute', (route) => {
    const limiter = route.config?.limiter;
    const onRequest: RequestHook[] = [];
    // Before the body is read, unless the limit depends on it.
    if (typeof limiter === 'string') onRequest.push((request) => limit(request, limiter));
    const preHandler: RequestHook[] = [];
    if (typeof limiter === 'function') preHandler.push((request) => limit(request, limiter(request)));
    const needsCaptcha = context.settings.captchaEnabled ? route.config?.captcha : undefined;
    // After the rate limit, which also bounds the requests to the provider.
    if (needsCaptcha !== undefined)
      preHandler.push(async (request) => {
        if (needsCaptcha(request)) await verifyCaptcha(request, context);
      });
    if (preHandler.length > 0) route.preHandler = [...preHandler, ...[route.preHandler ?? []].flat()];
    // The route checks the session.
    if (isAdminRoute(route.url)) onRequest.push(async (request) => void verifyAdmin(request, context));
    if (onRequest.length > 0) route.onRequest = [...onRequest, ...[route.onRequest ?? []].flat()];
  });
}

function isAdminRoute(pattern: string): boolean {
  return pattern === '/invite' || pattern.startsWith('/admin/');
}

type Limit = (request: FastifyRequest, limiter: Limiter) => Promise<void>;

function requestLimits(context: Context): Limit {
  const { settings } = context;
  const quotas: Readonly<Record<Limiter, Quota>> = {
    otp: bucketQuota(settings.rateLimitOtp, 5 * minuteMs),
    verify: bucketQuota(settings.rateLimitVerify, 5 * minuteMs),
    token: bucketQuota(settings.rateLimitTokenRefresh, 5 * minuteMs),
    anonymous: bucketQuota(settings.rateLimitAnonymousUsers, 60 * minuteMs),
    factor: bucketQuota(settings.rateLimitFactorVerify, minuteMs),
  };
  return async (request, limiter) => {
    const { nowMs, clientAddress } = requestMetadata(request, context);
    const key = rateLimitKey(request, settings) ?? clientAddress;
    const error = errors.over_request_rate_limit;
    await enforceQuota(context, { limiter, key, quota: quotas[limiter], nowMs, error });
  };
}

/** Without a trusted proxy, all clients would share the limits of the proxy's address. */
function untrustedProxyWarning({ settings, logger }: Context): Limit {
  let warned = false;
  return async (request) => {
    if (warned || !hasUntrustedProxy(request, settings)) return;
    warned = true;
    logger.warn(
      { proxy: request.socket.remoteAddress, setting: settingsSpec.trustedProxies.env },
      'untrusted proxy, rate limits by client address are disabled',
    );
  };
}
