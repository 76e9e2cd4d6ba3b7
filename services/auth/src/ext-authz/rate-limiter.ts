import { SpanKind } from '@opentelemetry/api';
import { type UnaryCallOptions, UnaryClient } from '@tollgate/kit/grpc/unary-client';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import type { TlsMetrics } from '@tollgate/kit/metrics';
import type { Tracing } from '@tollgate/kit/telemetry';
import { type WatchedTls, watchTlsFiles } from '@tollgate/kit/tls';
import type { LimitDescriptor } from '@tollgate/policies/compile/limits';
import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import { serverSettings } from '../config/server.ts';
import type { Settings } from '../config/settings.ts';
import { ClientAddresses, unknownAddress } from './client-address.ts';
import type { RateLimitMetrics } from './observability.ts';
import {
  describeLimit,
  type LimitPeek,
  type RateLimitAnswer,
  readPeekResponse,
  readRateLimitResponse,
  writePeekRequest,
  writeRateLimitRequest,
} from './rate-limit.ts';
import { timeoutShare } from './read-in-time.ts';
import type { AuthzRequest } from './request.ts';
import type { RateLimitResult } from './result.ts';

/** @see envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit */
const callPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

type RateLimiterSettings = Pick<
  Settings,
  | 'extAuthzRateLimitAddress'
  | 'extAuthzRateLimitDomain'
  | 'extAuthzRateLimitTimeoutMs'
  | 'extAuthzRateLimitOnFailure'
  | 'extAuthzRateLimitTls'
  | 'extAuthzRateLimitTlsCa'
  | 'extAuthzRateLimitTlsCert'
  | 'extAuthzRateLimitTlsKey'
  | 'trustedProxies'
>;

interface RateLimiterOptions {
  readonly settings: RateLimiterSettings;
  readonly logger: Logger;
  readonly tracing: Tracing;
  /** Both are undefined if metrics are off. */
  readonly metrics: RateLimitMetrics | undefined;
  readonly tlsMetrics: TlsMetrics | undefined;
}

/** An allowed request that has a limit. */
export interface LimitedCheck {
  readonly request: AuthzRequest;
  readonly identity: CallerIdentity | undefined;
  /** Path of the rule as written, or undefined if none matched. */
  readonly rulePath: string | undefined;
  readonly limits: readonly LimitDescriptor[];
  /** Undefined: that of the settings. */
  readonly domain: string | undefined;
  /** Time left for the check; infinite without a deadline. */
  readonly timeLeftMs: number;
}

/** The result of several domains: the first that denies, or else the limit with the least left. */
export function joinResults(results: readonly RateLimitResult[]): RateLimitResult {
  const [first = { code: 'ok', headers: {} }, ...others] = results;
  return others.reduce((worst, result) => (rank(result) < rank(worst) ? result : worst), first);
}

/** The lowest decides: a failure that denies, the longest wait, a failure, then what remains. */
function rank(result: RateLimitResult): number {
  if (result.code === 'error') return result.allowed ? -1 : Number.NEGATIVE_INFINITY;
  // A wait of 0 seconds is a denial, too.
  if (result.code === 'over_limit') return -1 - Math.max(1, readNumber(result, 'retry-after', 1));
  return Math.max(0, readNumber(result, 'ratelimit-remaining', Number.POSITIVE_INFINITY));
}

/** Headers of other rate limit services may have another form, which must not hide a denial. */
function readNumber({ headers }: RateLimitAnswer, name: string, fallback: number): number {
  const value = Number(headers[name] ?? fallback);
  return Number.isNaN(value) ? fallback : value;
}

const trustedProxiesSetting = serverSettings.trustedProxies.env;

/** Asks the rate limit service about requests that are allowed. */
export class RateLimiter {
  readonly #client: UnaryClient;
  readonly #tls: WatchedTls | undefined;
  readonly #settings: RateLimiterSettings;
  readonly #tracing: Tracing;
  readonly #metrics: RateLimitMetrics | undefined;
  readonly #addresses: ClientAddresses;
  readonly #failures: FailureLog;
  readonly #logger: Logger;
  #warnedOfHidden: boolean = false;
  #warnedOfUnknown: boolean = false;

  /**
   * Reads the TLS files; connects at `start`.
   *
   * @throws Error that names the file which cannot be used.
   */
  static async open(options: RateLimiterOptions): Promise<RateLimiter> {
    const { settings, logger, tlsMetrics } = options;
    const tls = settings.extAuthzRateLimitTls
      ? await watchTlsFiles(
          {
            certFile: settings.extAuthzRateLimitTlsCert,
            keyFile: settings.extAuthzRateLimitTlsKey,
            caFile: settings.extAuthzRateLimitTlsCa,
          },
          { logger, onCertificate: (validity) => tlsMetrics?.setValidity('rate_limit_client', validity) },
        )
      : undefined;
    return new RateLimiter(options, tls);
  }

  private constructor(options: RateLimiterOptions, tls: WatchedTls | undefined) {
    const { settings, logger, tracing, metrics } = options;
    this.#settings = settings;
    this.#tracing = tracing;
    this.#tls = tls;
    this.#metrics = metrics;
    this.#addresses = new ClientAddresses(settings.trustedProxies);
    this.#client = new UnaryClient({ address: settings.extAuthzRateLimitAddress, tls, logger });
    this.#logger = logger;
    this.#failures = new FailureLog({ logger, message: 'rate limit check failed', level: 'warn' });
  }

  start(): void {
    this.#client.start();
  }

  close(): void {
    this.#client.close();
    this.#tls?.close();
  }

  /** Undefined if no descriptor has all of its values. The promise never rejects. */
  check(check: LimitedCheck): Promise<RateLimitResult> | undefined {
    const { request, identity, rulePath, limits } = check;
    const remoteAddress = this.#addresses.find(request);
    if (!this.#warnedOfHidden) this.#warnOfHiddenClient(check);
    if (!this.#warnedOfUnknown && remoteAddress === unknownAddress) this.#warnOfUnknownClient(limits);
    const domain = check.domain ?? this.#settings.extAuthzRateLimitDomain;
    const { method, headers } = request;
    const limited = { identity, method, rulePath, remoteAddress, headers };
    const message = writeRateLimitRequest(domain, limits, limited);
    if (message === undefined) return undefined;
    const timeoutMs = Math.min(
      this.#settings.extAuthzRateLimitTimeoutMs,
      Math.max(0, check.timeLeftMs * timeoutShare),
    );
    return this.#call(message, timeoutMs, () => {
      const denying = limits.filter(({ mode }) => mode === undefined);
      return denying.length > 0 && writeRateLimitRequest(domain, denying, limited) !== undefined;
    });
  }

  /** Reads the counters of the limits of a request, without counting it. Never rejects. */
  async peek({ request, identity, rulePath, limits, domain }: LimitedCheck): Promise<readonly LimitPeek[]> {
    const { extAuthzRateLimitDomain, extAuthzRateLimitTimeoutMs, extAuthzRateLimitOnFailure } =
      this.#settings;
    const remoteAddress = this.#addresses.find(request);
    const { method, headers } = request;
    const limited = { identity, method, rulePath, remoteAddress, headers };
    const { message, counted, others } = writePeekRequest(domain ?? extAuthzRateLimitDomain, limits, limited);
    if (message === undefined) return others;
    try {
      const reply = await this.#client.call(callPath, message, { timeoutMs: extAuthzRateLimitTimeoutMs });
      return [...readPeekResponse(reply, counted), ...others];
    } catch (error) {
      this.#failures.log(error, { explained: true });
      const isOpen = extAuthzRateLimitOnFailure === 'allow';
      const failed = counted.map((limit) =>
        describeLimit(limit, isOpen || limit.mode !== undefined ? 'failed_open' : 'failed_closed'),
      );
      return [...failed, ...others];
    }
  }

  /**
   * All clients behind such a proxy share the limits of its address. Trusting one that does not
   * add to X-Forwarded-For would let clients choose their address.
   */
  #warnOfHiddenClient({ request, limits }: LimitedCheck): void {
    if (!limitsAddresses(limits)) return;
    if (!this.#addresses.isHidden(request)) return;
    this.#warnedOfHidden = true;
    this.#logger.warn(
      { proxy: request.sourceAddress, setting: trustedProxiesSetting },
      'clients share the limits by remote_address: trust the proxy if it adds to X-Forwarded-For, ' +
        'or let the load balancer preserve client addresses',
    );
  }

  /** All clients without a known address share one counter. */
  #warnOfUnknownClient(limits: readonly LimitDescriptor[]): void {
    if (!limitsAddresses(limits)) return;
    this.#warnedOfUnknown = true;
    this.#logger.warn(
      'client address unknown, such clients share the limits by remote_address: ' +
        'over HTTP the gateway must send X-Forwarded-For',
    );
  }

  /** A failure does not deny requests that no limit could deny. */
  async #call(message: Uint8Array, timeoutMs: number, mayDeny: () => boolean): Promise<RateLimitResult> {
    const startedMs = performance.now();
    let result: RateLimitResult;
    try {
      const reply = this.#tracing.enabled
        ? await this.#callInSpan(message, timeoutMs)
        : await this.#client.call(callPath, message, { timeoutMs });
      result = readRateLimitResponse(reply);
    } catch (error) {
      const onFailure = this.#settings.extAuthzRateLimitOnFailure;
      this.#failures.log(error, { on_failure: onFailure });
      result = { code: 'error', allowed: onFailure === 'allow' || !mayDeny() };
    }
    this.#metrics?.record(result.code, (performance.now() - startedMs) / 1000);
    return result;
  }

  /** The service continues the trace. */
  #callInSpan(message: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    return this.#tracing.inSpan(callPath.slice(1), { kind: SpanKind.CLIENT }, (_span, context) => {
      const headers: Record<string, string> = {};
      this.#tracing.inject(headers, context);
      const options: UnaryCallOptions = { timeoutMs, headers };
      return this.#client.call(callPath, message, options);
    });
  }
}

const limitsAddresses = (limits: readonly LimitDescriptor[]): boolean =>
  limits.some(({ keys }) => keys.includes('remote_address'));
