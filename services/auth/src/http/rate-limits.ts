import type { FastifyRequest } from 'fastify';
import { type Settings, settingsSpec } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors, RetryLaterError } from '../errors.ts';
import { bucketQuota, type Quota } from '../messages/quotas.ts';
import type { Api } from './api.ts';
import { comesThroughUnknownProxy, knowsClients, rateLimitKey, requestMetadata } from './request-metadata.ts';

/** Things that each client address may do only so often; the settings say how often. */
export type Limiter = 'otp' | 'verify' | 'token' | 'anonymous' | 'factor';

declare module 'fastify' {
  // The library's way to type `config` of a route.
  interface FastifyContextConfig {
    /** Counts the requests of each client address against this limit, or the one that a request is for. */
    limiter?: Limiter | ((request: FastifyRequest) => Limiter);
  }
}

const minuteMs = 60_000;

/** Refuses requests of routes with `config.limiter` beyond the limit of their client. */
export function addRequestLimits(api: Api, deps: Context): void {
  const { settings, store } = deps;
  if (!knowsClients(settings)) {
    warnOfUnknownProxy(api, deps);
    return;
  }
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
    const { nowMs, clientAddress } = requestMetadata(request, deps);
    const key = rateLimitKey(request, settings) ?? clientAddress;
    const answer = await store.quotas.take({ limiter, key, quota: quotas[limiter] }, nowMs);
    if (!answer.allowed)
      throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
  }
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

/** Logs one warning when requests come through an untrusted proxy: limits by client address are off then. */
function warnOfUnknownProxy(api: Api, { settings, logger }: Context): void {
  let warned = false;
  api.addHook('onRequest', (request, _reply, done) => {
    if (!warned && comesThroughUnknownProxy(request, settings)) {
      warned = true;
      logger.warn(
        { proxy: request.socket.remoteAddress, setting: settingsSpec.trustedProxies.env },
        'proxy not trusted, limits by client address are off',
      );
    }
    done();
  });
}
