import type { FastifyRequest } from 'fastify';
import { type Settings, settingsSpec } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { bucketQuota, enforceQuota, type Quota } from '../messages/quotas.ts';
import type { Api } from './api.ts';
import { canIdentifyClients, hasUntrustedProxy, rateLimitKey, requestMetadata } from './request-metadata.ts';

/** Rate limits per client address. */
export type Limiter = 'otp' | 'verify' | 'token' | 'anonymous' | 'factor';

declare module 'fastify' {
  // The library's way to type `config` of a route.
  interface FastifyContextConfig {
    /** The limit of the route, or a function that selects one per request. */
    limiter?: Limiter | ((request: FastifyRequest) => Limiter);
  }
}

const minuteMs = 60_000;

/** Applies the limits of routes with `config.limiter`. */
export function addRequestLimits(api: Api, context: Context): void {
  const { settings } = context;
  if (!canIdentifyClients(settings)) {
    warnOfUntrustedProxy(api, context);
    return;
  }
  const quotas = getQuotas(settings);
  // Before the body is read, unless the limit depends on it.
  api.addHook('onRequest', async (request) => {
    const { limiter } = request.routeOptions.config;
    if (typeof limiter === 'string') await take(limiter, request);
  });
  api.addHook('preHandler', async (request) => {
    const { limiter } = request.routeOptions.config;
    if (typeof limiter === 'function') await take(limiter(request), request);
  });

  async function take(limiter: Limiter, request: FastifyRequest): Promise<void> {
    const { nowMs, clientAddress } = requestMetadata(request, context);
    const key = rateLimitKey(request, settings) ?? clientAddress;
    const error = errors.over_request_rate_limit;
    await enforceQuota(context, { limiter, key, quota: quotas[limiter], nowMs, error });
  }
}

function getQuotas(s: Settings): Readonly<Record<Limiter, Quota>> {
  return {
    otp: bucketQuota(s.rateLimitOtp, 5 * minuteMs),
    verify: bucketQuota(s.rateLimitVerify, 5 * minuteMs),
    token: bucketQuota(s.rateLimitTokenRefresh, 5 * minuteMs),
    anonymous: bucketQuota(s.rateLimitAnonymousUsers, 60 * minuteMs),
    factor: bucketQuota(s.rateLimitFactorVerify, minuteMs),
  };
}

/** Without a trusted proxy, all clients would share the limits of the proxy's address. */
function warnOfUntrustedProxy(api: Api, { settings, logger }: Context): void {
  let warned = false;
  api.addHook('onRequest', (request, _reply, done) => {
    if (!warned && hasUntrustedProxy(request, settings)) {
      warned = true;
      logger.warn(
        { proxy: request.socket.remoteAddress, setting: settingsSpec.trustedProxies.env },
        'untrusted proxy, rate limits by client address are disabled',
      );
    }
    done();
  });
}
