import type { FastifyRequest } from 'fastify';
import type { Limiter } from '../../domain/limiters.ts';
import { bucketQuota, type Quota } from '../../domain/quota.ts';
import { errors, RetryLaterError } from '../../errors.ts';
import type { Settings } from '../../settings/settings.ts';
import type { Api, RouteDeps } from './api.ts';
import { requestFacts } from './request-facts.ts';

declare module 'fastify' {
  // The library's way to type `config` of a route.
  interface FastifyContextConfig {
    /** Counts the requests of each client address against this limit, or the one that a request is for. */
    limiter?: Limiter | ((request: FastifyRequest) => Limiter);
  }
}

const minuteMs = 60_000;

/** Refuses requests of routes with `config.limiter` beyond the limit of their client. */
export function addRequestLimits(api: Api, deps: RouteDeps): void {
  const { settings, store } = deps;
  if (!knowsClients(settings)) return;
  const quotas = quotasOf(settings);
  // Before the body is read, unless it decides which limit the request counts against.
  api.addHook('onRequest', async (request) => {
    const { limiter } = request.routeOptions.config;
    if (typeof limiter === 'string') await take(limiter, request);
  });
  api.addHook('preHandler', async (request) => {
    const { limiter } = request.routeOptions.config;
    if (typeof limiter === 'function') await take(limiter(request), request);
  });

  async function take(limiter: Limiter, request: FastifyRequest): Promise<void> {
    const { nowMs, clientAddress } = requestFacts(request, deps);
    const key = headerKey(request.headers[settings.rateLimitHeader.toLowerCase()]) ?? clientAddress;
    const answer = await store.quotas.take({ limiter, key, quota: quotas[limiter] }, nowMs);
    if (!answer.allowed)
      throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
  }
}

/** Without any of these every request may come from one and the same proxy, whose clients would use up each other's limit. */
function knowsClients({ rateLimitHeader, forwardedForEnabled, trustedProxies }: Settings): boolean {
  return rateLimitHeader !== '' || forwardedForEnabled || trustedProxies.length > 0;
}

function quotasOf(s: Settings): Readonly<Record<Limiter, Quota>> {
  return {
    otp: bucketQuota(s.rateLimitOtp, 5 * minuteMs),
    verify: bucketQuota(s.rateLimitVerify, 5 * minuteMs),
    token: bucketQuota(s.rateLimitTokenRefresh, 5 * minuteMs),
    anonymous: bucketQuota(s.rateLimitAnonymousUsers, 60 * minuteMs),
    factor: bucketQuota(s.rateLimitFactorVerify, minuteMs),
  };
}

/** Longer ones are nobody's name. */
const maxKeyChars = 256;

function headerKey(header: string | string[] | undefined): string | undefined {
  const first = header?.toString().split(',', 1)[0]?.trim() ?? '';
  return first === '' ? undefined : first.slice(0, maxKeyChars);
}
