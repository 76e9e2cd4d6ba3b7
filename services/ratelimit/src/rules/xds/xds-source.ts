import { backoffDelays } from '@tollgate/kit/backoff';
import { trimDetails } from '@tollgate/kit/grpc/library';
import type { Logger } from '@tollgate/kit/logger';
import { maxTimerMs, sleepFor } from '@tollgate/kit/time';
import { statsNames } from '../../stats/names.ts';
import type { StatsRegistry } from '../../stats/registry.ts';
import { createTlsStats } from '../../stats/server-stats.ts';
import type { RuleLoad, RuleSource } from '../rule-store.ts';
import {
  type AdsStreamOptions,
  type ChannelTls,
  type ChannelTlsOptions,
  type FollowedStream,
  followStream,
  plaintextChannel,
  watchChannelTls,
} from './ads-stream.ts';
import type { DiscoveryNode } from './discovery.ts';
import { createSubscriber } from './subscriber.ts';

/** How long to wait before the server is called again. */
export interface ReconnectPauseOptions {
  /** CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL; each pause is drawn from half of it to one and a half. */
  readonly connectRetryMs: number;
  /** XDS_CLIENT_BACKOFF_INITIAL_INTERVAL. */
  readonly initialMs: number;
  /** XDS_CLIENT_BACKOFF_MAX_INTERVAL. */
  readonly maxMs: number;
  /** How far the growing pauses are spread, 0 to 1: XDS_CLIENT_BACKOFF_RANDOM_FACTOR, or 0 without jitter. */
  readonly spread: number;
}

/** How a stream ended. */
export interface EndedStream {
  /** The connection stood. */
  readonly connected: boolean;
  /** The server has sent something. */
  readonly delivered: boolean;
}

/** Spread of the short pauses: limiters that lost one server together must not all come back at once. */
const connectRetrySpread = 0.5;

/**
 * Makes the function from how a stream ended to the pause before the next. A stream that had worked, and a server that
 * cannot be reached, are tried again after the short interval, for as long as the first growing pause would take: most
 * outages are restarts. What lasts longer, and a server that ends streams without sending anything, gets pauses that double.
 */
export function createReconnectPauses(
  { connectRetryMs, initialMs, maxMs, spread }: ReconnectPauseOptions,
  random: () => number,
): (ended: EndedStream) => number {
  const shortTries = Math.max(1, Math.floor(initialMs / connectRetryMs));
  const short = backoffDelays({
    initialMs: connectRetryMs,
    maxMs: Math.min(maxTimerMs, connectRetryMs * (1 + connectRetrySpread)),
    factor: 1,
    jitter: connectRetrySpread,
    random,
  });
  const growing = backoffDelays({ initialMs, maxMs, jitter: spread, random });
  let shortPauses = 0;
  let growingPauses = 0;

  return ({ connected, delivered }) => {
    if (delivered) {
      shortPauses = 0;
      growingPauses = 0;
    }
    const isBrief = (delivered || !connected) && growingPauses === 0 && shortPauses < shortTries;
    if (isBrief) {
      shortPauses++;
      return short(shortPauses);
    }
    growingPauses++;
    return growing(growingPauses);
  };
}

/** Which management server rules come from, by the CONFIG_GRPC_XDS_* and XDS_CLIENT_* settings. */
export interface XdsRuleSourceOptions {
  readonly node: DiscoveryNode;
  readonly stream: AdsStreamOptions;
  /** Undefined: without TLS. */
  readonly tls: ChannelTlsOptions | undefined;
  readonly pauses: ReconnectPauseOptions;
  readonly mergeDomains: boolean;
}

/** What the source takes. */
export interface XdsRuleSourceDeps {
  readonly random: () => number;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
  /** Resolves after that time, rejects when the signal aborts. */
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** How often a start that waits says so; default 30 seconds. */
  readonly waitLogMs?: number;
}

/**
 * Makes the source that is told its rules by a management server: ADS, state of the world. The rules in force stay while
 * the server is away. TLS files that do not fit together are a start error.
 */
export function createXdsRuleSource(options: XdsRuleSourceOptions, deps: XdsRuleSourceDeps): RuleSource {
  const { logger, sleep = sleepFor, waitLogMs = 30_000 } = deps;
  const { serverUrl: server } = options.stream;
  const connected = deps.stats.gauge(statsNames.xdsConnected);
  const pauseAfter = createReconnectPauses(options.pauses, deps.random);
  const ended = new AbortController();
  const firstLoad = Promise.withResolvers<void>();
  let following: Promise<void> = Promise.resolve();

  async function follow(tls: ChannelTls, onLoad: (load: RuleLoad) => void): Promise<void> {
    const subscriber = createSubscriber(
      { mergeDomains: options.mergeDomains, server },
      {
        ...deps,
        sleep,
        signal: ended.signal,
        onLoad(load) {
          onLoad(load);
          if (load.ok) firstLoad.resolve();
        },
      },
    );
    while (!ended.signal.aborted) {
      const stream = await followStream(options.stream, options.node, {
        credentials: tls.credentials,
        take: subscriber.take,
        onDelivered,
        signal: ended.signal,
      });
      connected.value = 0;
      if (ended.signal.aborted) break;
      const delayMs = Math.round(pauseAfter(stream));
      logEnd(stream, delayMs);
      await sleep(delayMs, { signal: ended.signal }).catch(() => undefined);
    }
    tls.close();
  }

  function onDelivered(): void {
    connected.value = 1;
    logger.info({ server }, 'management server is there');
  }

  /** Servers end streams of a certain age, so the end of one that has worked is no news at the usual level. */
  function logEnd(stream: FollowedStream, delayMs: number): void {
    const reason = reasonOf(stream.error);
    const fields = { server, reason, delayMs };
    if (tooLarge.test(reason))
      logger.error(
        { ...fields, maxMessageBytes: options.stream.maxMessageBytes },
        'configuration larger than XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: raise it; the rules in force stay',
      );
    else if (stream.delivered) logger.info(fields, 'stream of the management server ended');
    else if (stream.connected)
      logger.warn(fields, 'management server ended the stream without a configuration');
    else logger.warn(fields, 'management server not reachable');
  }

  function close(): Promise<void> {
    ended.abort();
    firstLoad.resolve();
    return following;
  }

  return {
    async start(onLoad, { signal } = {}) {
      const tls =
        options.tls === undefined
          ? plaintextChannel
          : await watchChannelTls(options.tls, {
              logger,
              onCertificate: (validity) => createTlsStats(deps.stats).setValidity('xds_client', validity),
            });
      following = follow(tls, onLoad);
      const onAbort = (): void => void close();
      if (signal?.aborted === true) onAbort();
      signal?.addEventListener('abort', onAbort, { once: true });
      const waiting = setInterval(
        () => logger.warn({ server }, 'waiting for a first configuration of the management server'),
        waitLogMs,
      );
      await firstLoad.promise;
      clearInterval(waiting);
      signal?.removeEventListener('abort', onAbort);
    },
    close,
  };
}

/** In the words of @grpc/grpc-js, which has no code of its own for it. */
const tooLarge = /larger than/i;

function reasonOf(error: unknown): string {
  if (error === undefined) return 'ended by the server';
  return trimDetails(error instanceof Error ? error.message : String(error));
}
