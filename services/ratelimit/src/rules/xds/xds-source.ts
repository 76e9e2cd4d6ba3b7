import { backoffDelays } from '@tollgate/kit/backoff';
import { getErrorMessage } from '@tollgate/kit/errors';
import { trimDetails } from '@tollgate/kit/grpc/library';
import type { Logger } from '@tollgate/kit/logger';
import { maxTimerMs, sleepFor } from '@tollgate/kit/time';
import { limiterClassKey } from '@tollgate/rules/resource-shape';
import { defaultMaxMessageBytes } from '../../config/rules.ts';
import type { Settings } from '../../config/settings.ts';
import { describeNotAtomic } from '../../config/stores.ts';
import type { Context } from '../../context.ts';
import { statsNames } from '../../metrics/names.ts';
import type { Gauge } from '../../metrics/registry.ts';
import { createTlsStats } from '../../metrics/server-stats.ts';
import type { RuleLoad, RuleSource, RuleSourceStart } from '../rule-store.ts';
import type { DiscoveryNode } from './ads-stream.ts';
import {
  type AdsStreamOptions,
  type ChannelTls,
  type ChannelTlsOptions,
  type EndedStream,
  followStream,
  plaintextChannel,
  watchChannelTls,
} from './ads-stream.ts';
import { Subscriber } from './subscriber.ts';

export interface XdsSourceOptions {
  readonly node: DiscoveryNode;
  readonly stream: AdsStreamOptions;
  /** Undefined for plaintext. */
  readonly tls: ChannelTlsOptions | undefined;
  readonly backoff: ReconnectBackoffOptions;
  readonly mergeDomains: boolean;
  readonly forMemcached: boolean;
  readonly notAtomic?: string | undefined;
  readonly calendarMonths?: boolean | undefined;
  /** Interval of reports of the rules that have matched; 0 or undefined for none. */
  readonly matchReportIntervalMs?: number;
}

export interface XdsSourceContext extends Pick<Context, 'random' | 'stats' | 'logger'> {
  /** Resolves after that time, rejects when the signal aborts. */
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** Interval of the warning while the start waits; default 30 seconds. */
  readonly waitLogMs?: number;
}

/** CONFIG_TYPE=GRPC_XDS_SOTW. */
export function createXdsSource(settings: Settings, context: Context): XdsSource {
  return new XdsSource(
    {
      node: {
        id: settings.xdsNodeId,
        metadata: {
          ...settings.xdsNodeMetadata,
          ...(settings.xdsLimiterClass !== '' && { [limiterClassKey]: settings.xdsLimiterClass }),
        },
      },
      stream: {
        // As in Go, `:18000` is this machine.
        serverUrl: settings.xdsServerUrl.startsWith(':')
          ? `localhost${settings.xdsServerUrl}`
          : settings.xdsServerUrl,
        headers: settings.xdsAdditionalHeaders,
        maxMessageBytes: settings.xdsMaxMessageBytes || defaultMaxMessageBytes,
      },
      tls: settings.xdsServerUseTls
        ? {
            certFile: settings.xdsClientTlsCert,
            keyFile: settings.xdsClientTlsKey,
            caFile: settings.xdsServerTlsCacert,
            serverName: settings.xdsServerTlsSan,
          }
        : undefined,
      backoff: {
        connectRetryMs: settings.xdsConnectRetryIntervalMs,
        initialMs: settings.xdsBackoffInitialIntervalMs,
        maxMs: settings.xdsBackoffMaxIntervalMs,
        jitter: settings.xdsBackoffJitter ? settings.xdsBackoffRandomFactor : 0,
      },
      mergeDomains: settings.mergeDomainConfig,
      forMemcached: settings.backendType === 'memcache',
      notAtomic: describeNotAtomic(settings),
      calendarMonths: settings.useCalendarMonths,
      matchReportIntervalMs: settings.xdsMatchReportIntervalMs,
    },
    context,
  );
}

/**
 * Receives rules from a management server: ADS, state of the world. The active rules stay while the
 * server is unreachable. Invalid TLS files are an error of `start`.
 */
export class XdsSource implements RuleSource {
  readonly #options: XdsSourceOptions;
  readonly #context: XdsSourceContext;
  readonly #logger: Logger;
  readonly #sleep: NonNullable<XdsSourceContext['sleep']>;
  readonly #connected: Gauge;
  readonly #backoff: ReconnectBackoff;
  readonly #closing = new AbortController();
  readonly #firstLoad = Promise.withResolvers<void>();
  #following: Promise<void> = Promise.resolve();

  constructor(options: XdsSourceOptions, context: XdsSourceContext) {
    this.#options = options;
    this.#context = context;
    this.#logger = context.logger;
    this.#sleep = context.sleep ?? sleepFor;
    this.#connected = context.stats.gauge(statsNames.xdsConnected);
    this.#backoff = new ReconnectBackoff(options.backoff, context.random);
  }

  async start(
    onLoad: (load: RuleLoad) => void,
    { signal, onCandidates }: RuleSourceStart = {},
  ): Promise<void> {
    const { waitLogMs = 30_000 } = this.#context;
    const { serverUrl: server } = this.#options.stream;
    const tls = await this.#watchTls();
    this.#following = this.#follow(tls, onLoad, onCandidates);
    const onAbort = (): void => void this.close();
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    const waiting = setInterval(
      () => this.#logger.warn({ server }, 'waiting for the first configuration of the management server'),
      waitLogMs,
    );
    await this.#firstLoad.promise;
    clearInterval(waiting);
    signal?.removeEventListener('abort', onAbort);
  }

  close(): Promise<void> {
    this.#closing.abort();
    this.#firstLoad.resolve();
    return this.#following;
  }

  async #watchTls(): Promise<ChannelTls> {
    const { tls } = this.#options;
    const { stats } = this.#context;
    return tls === undefined
      ? plaintextChannel
      : await watchChannelTls(tls, {
          logger: this.#logger,
          onCertificate: (validity) => createTlsStats(stats).setValidity('xds_client', validity),
        });
  }

  async #follow(
    tls: ChannelTls,
    onLoad: (load: RuleLoad) => void,
    onCandidates: ((load: RuleLoad) => void) | undefined,
  ): Promise<void> {
    const { stream, node, mergeDomains, forMemcached, notAtomic, calendarMonths } = this.#options;
    const { signal } = this.#closing;
    const subscriber = new Subscriber({
      mergeDomains,
      forMemcached,
      notAtomic,
      calendarMonths,
      server: stream.serverUrl,
      stats: this.#context.stats,
      logger: this.#logger,
      sleep: this.#sleep,
      signal,
      onLoad: (load) => {
        onLoad(load);
        if (load.ok) this.#firstLoad.resolve();
      },
      onCandidates,
    });
    while (!signal.aborted) {
      subscriber.startStream();
      const ended = await followStream(stream, node, {
        credentials: tls.credentials,
        onResponse: (response) => subscriber.handle(response),
        onDelivered: () => this.#onDelivered(),
        onReportDue: () => subscriber.reportMatches(node),
        reportIntervalMs: this.#options.matchReportIntervalMs ?? 0,
        signal,
      });
      this.#connected.value = 0;
      if (signal.aborted) break;
      const delayMs = Math.round(this.#backoff.delayAfterMs(ended));
      this.#logEnd(ended, delayMs);
      await this.#sleep(delayMs, { signal }).catch(() => undefined);
    }
    tls.close();
  }

  #onDelivered(): void {
    this.#connected.value = 1;
    this.#logger.info({ server: this.#options.stream.serverUrl }, 'connected to the management server');
  }

  /** Servers end streams of a certain age, so the end of one that had delivered is an info. */
  #logEnd(ended: EndedStream, delayMs: number): void {
    const logger = this.#logger;
    const { serverUrl: server, maxMessageBytes } = this.#options.stream;
    const reason = getEndReason(ended.error);
    const fields = { server, reason, delayMs };
    if (tooLarge.test(reason))
      logger.error(
        { ...fields, maxMessageBytes },
        'configuration larger than XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES, keeping the active rules',
      );
    else if (ended.delivered) logger.info(fields, 'management server ended the stream');
    else if (ended.connected)
      logger.warn(fields, 'management server ended the stream without a configuration');
    else logger.warn(fields, 'management server unreachable');
  }
}

/** The message of @grpc/grpc-js, which has no code for it. */
const tooLarge = /larger than/i;

function getEndReason(error: unknown): string {
  if (error === undefined) return 'ended by the server';
  return trimDetails(getErrorMessage(error));
}

export interface ReconnectBackoffOptions {
  /** CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL; each pause is 0.5 to 1.5 times as long. */
  readonly connectRetryMs: number;
  /** XDS_CLIENT_BACKOFF_INITIAL_INTERVAL. */
  readonly initialMs: number;
  /** XDS_CLIENT_BACKOFF_MAX_INTERVAL. */
  readonly maxMs: number;
  /** Jitter of the growing pauses, 0 to 1: XDS_CLIENT_BACKOFF_RANDOM_FACTOR. */
  readonly jitter: number;
}

/** Jitter of the short pauses, so that limiters that lost one server do not reconnect at once. */
const connectRetryJitter = 0.5;

/**
 * The pauses between streams. After a stream that had worked, and while the server is unreachable,
 * it is the short interval, so that rules are current again soon after any outage: an attempt that
 * fails to connect costs next to nothing. Servers that end streams without a response get pauses
 * that double.
 */
export class ReconnectBackoff {
  readonly #short: (attempt: number) => number;
  readonly #growing: (attempt: number) => number;
  #growingPauses = 0;

  constructor(options: ReconnectBackoffOptions, random: () => number) {
    const { connectRetryMs, initialMs, maxMs, jitter } = options;
    this.#short = backoffDelays({
      initialMs: connectRetryMs,
      maxMs: Math.min(maxTimerMs, connectRetryMs * (1 + connectRetryJitter)),
      factor: 1,
      jitter: connectRetryJitter,
      random,
    });
    this.#growing = backoffDelays({ initialMs, maxMs, jitter, random });
  }

  delayAfterMs({ connected, delivered }: Pick<EndedStream, 'connected' | 'delivered'>): number {
    this.#growingPauses = delivered || !connected ? 0 : this.#growingPauses + 1;
    return this.#growingPauses === 0 ? this.#short(1) : this.#growing(this.#growingPauses);
  }
}
