import type { Millis } from '@tollgate/kit/time';
import type { FastifyRequest } from 'fastify';
import { type Settings, settingsSpec } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors, RetryLaterError } from '../errors.ts';
import { limitedClient } from '../http/request-metadata.ts';
import { bucketQuota, enforceQuota } from '../messages/quotas.ts';

const minuteMs = 60_000;

interface RequestLimit {
  readonly events: (settings: Settings) => number;
  readonly periodMs: Millis;
  /**
   * The requests that count where clients cannot be distinguished, and share a limit for each
   * instance. Clients that are refused a refresh sign their user out: only failures count there.
   */
  readonly shared: 'requests' | 'failures';
}

/** Limits of requests. The key is the client: an IPv4 address, or an IPv6 network /64. */
const limits = {
  otp: { events: (settings) => settings.rateLimitOtp, periodMs: 5 * minuteMs, shared: 'requests' },
  verify: { events: (settings) => settings.rateLimitVerify, periodMs: 5 * minuteMs, shared: 'requests' },
  token: { events: (settings) => settings.rateLimitTokenRefresh, periodMs: 5 * minuteMs, shared: 'failures' },
  web3: { events: (settings) => settings.rateLimitWeb3, periodMs: 5 * minuteMs, shared: 'requests' },
  anonymous: {
    events: (settings) => settings.rateLimitAnonymousUsers,
    periodMs: 60 * minuteMs,
    shared: 'requests',
  },
  passkey: { events: (settings) => settings.rateLimitPasskey, periodMs: 5 * minuteMs, shared: 'requests' },
  factor: { events: (settings) => settings.rateLimitFactorVerify, periodMs: minuteMs, shared: 'requests' },
} as const satisfies Readonly<Record<string, RequestLimit>>;

export type Limiter = keyof typeof limits;

/** A leaky bucket in memory. */
interface Bucket {
  readonly used: number;
  readonly sinceMs: number;
}

type LimitsContext = Pick<Context, 'store' | 'settings' | 'logger' | 'metrics' | 'nowMs'>;

/**
 * Limits requests per client, for all replicas. Behind a proxy that the settings do not trust,
 * clients cannot be distinguished: they share a larger limit in each instance.
 */
export class RequestLimits {
  readonly #context: LimitsContext;
  /** One for each limit. */
  readonly #shared = new Map<Limiter, Bucket>();
  #hasWarned: boolean = false;

  constructor(context: LimitsContext) {
    this.#context = context;
  }

  /** Counts a request. @throws AppError `over_request_rate_limit` */
  async enforce(request: FastifyRequest, limiter: Limiter): Promise<void> {
    const { settings, metrics } = this.#context;
    const limit: RequestLimit = limits[limiter];
    const key = limitedClient(request, settings);
    if (key === undefined) {
      this.#warn(request);
      if (limit.shared === 'requests') this.#enforceShared(limiter, settings.rateLimitUnknownClients);
      return;
    }
    const quota = bucketQuota(limit.events(settings), limit.periodMs);
    const error = () => {
      metrics.refusedRequests.inc({ limiter, key: 'client' });
      return errors.over_request_rate_limit();
    };
    await enforceQuota(this.#context, { limiter, key, quota, nowMs: this.#context.nowMs(), error });
  }

  /** Counts a failure of a request whose client is unknown; other requests were counted before. */
  enforceFailure(request: FastifyRequest, limiter: Limiter): void {
    if (limitedClient(request, this.#context.settings) === undefined) this.#enforceShared(limiter, 1);
  }

  #enforceShared(limiter: Limiter, factor: number): void {
    const { settings, metrics, nowMs } = this.#context;
    const limit: RequestLimit = limits[limiter];
    if (settings.rateLimitUnknownClients === 0) return;
    const { size, refillEveryMs } = bucketQuota(limit.events(settings) * factor, limit.periodMs);
    const now = nowMs();
    const { used, sinceMs } = this.#shared.get(limiter) ?? { used: 0, sinceMs: now };
    const count = Math.max(0, used - (now - sinceMs) / refillEveryMs) + 1;
    if (count > size) {
      metrics.refusedRequests.inc({ limiter, key: 'instance' });
      throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(refillEveryMs / 1000));
    }
    this.#shared.set(limiter, { used: count, sinceMs: now });
  }

  #warn(request: FastifyRequest): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#context.logger.warn(
      { proxy: request.socket.remoteAddress, setting: settingsSpec.trustedProxies.env },
      'client addresses unknown, all clients share larger rate limits',
    );
  }
}
