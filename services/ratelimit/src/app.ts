import type { Writable } from 'node:stream';
import { logGrpcLibrary } from '@tollgate/kit/grpc/library';
import { createSanGuard, everyPeer } from '@tollgate/kit/grpc/peer';
import { UnaryServer } from '@tollgate/kit/grpc/unary-server';
import { Health } from '@tollgate/kit/health';
import { nameListenSettings } from '@tollgate/kit/http-server';
import { createTermination, Lifecycle } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { startTracing } from '@tollgate/kit/telemetry';
import { maxTimerMs, monotonicNow } from '@tollgate/kit/time';
import { watchTlsFiles } from '@tollgate/kit/tls';
import { counterBackends } from './backends/counter-backends.ts';
import {
  deciderOptions,
  grpcServerOptions,
  serverTlsFiles,
  statsSinkOptions,
  tracingOptions,
} from './config/options.ts';
import { type Settings, sinkSwitches } from './config/settings.ts';
import { chooseSink } from './config/stats.ts';
import { createApiServer } from './http/api-server.ts';
import { createDebugServer } from './http/debug-server.ts';
import { createCountHits } from './ratelimit/hits.ts';
import { createLocalCache, type LocalCache, registerLocalCacheGauges } from './ratelimit/local-cache.ts';
import { createDecider, createShouldRateLimit, shouldRateLimitPath } from './ratelimit/service.ts';
import { createDecisionStats } from './ratelimit/stats.ts';
import { traceDecisions } from './ratelimit/tracing.ts';
import { warmUp } from './ratelimit/warm-up.ts';
import { ruleSources } from './rules/rule-sources.ts';
import { createRuleStore } from './rules/rule-store.ts';
import { createStatsRegistry, type StatsRegistry } from './stats/registry.ts';
import { countCertificateLoads, createServerStats, createTlsStats } from './stats/server-stats.ts';
import { createStatsFlusher, type StatsFlusher, statsSinks } from './stats/sinks.ts';
import { countReservedTags } from './stats/tags.ts';

/** What the service takes from the process. */
export interface AppDeps {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly random: () => number;
  /** Where statistics are written when no sink is chosen. */
  readonly output: Writable;
  /** Makes the first decisions as fast as later ones, for about 0.2 s of the start. */
  readonly warmUp: boolean;
}

/** The service, put together and not yet started. */
export interface App {
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  /** Everything the service counts. */
  readonly stats: StatsRegistry;
  /** Ports in use once started; those set to 0 were chosen by the system. */
  readonly ports: { http: number; grpc: number; debug: number };
}

/** Puts the service together: the one place that knows every part. */
export async function buildApp(settings: Settings, deps: AppDeps): Promise<App> {
  const { logger } = deps;
  // Process-wide, like the library's log itself; before anything of it can have something to say.
  logGrpcLibrary(logger);
  const nowSeconds = (): number => Math.floor(deps.nowMs() / 1000);
  const health = new Health();
  const stats = createStatsRegistry();
  countReservedTags(stats, settings.extraTags);
  const lifecycle = new Lifecycle({
    logger,
    drainTimeoutMs: Math.min(maxTimerMs, settings.shutdownDelayMs + settings.drainTimeoutMs),
  });
  const ports = { http: settings.port, grpc: settings.grpcPort, debug: settings.debugPort };

  const flusher = createFlusher(settings, stats, deps);
  const rules = createRuleStore({
    stats,
    logger,
    health: settings.healthyWithAtLeastOneConfigLoaded
      ? health.component('config', { healthy: false })
      : undefined,
  });
  const ruleSource = ruleSources[settings.configType].create(settings, {
    random: deps.random,
    stats,
    logger,
  });
  const backend = await counterBackends[settings.backendType].create(settings, {
    nowSeconds,
    random: deps.random,
    health,
    stats,
    logger,
  });
  const debug = createDebugServer(
    {
      rules: rules.current,
      counters: { backend, nowSeconds, cacheKeyPrefix: settings.cacheKeyPrefix },
      stats,
      logger,
    },
    { host: settings.debugHost, port: settings.debugPort },
  );
  const decide = createDecider(
    {
      rules: rules.current,
      countHits: createCountHits({
        backend,
        localCache: createOptionalLocalCache(settings.localCacheSizeBytes, stats),
        stopIncrementWhenOverLimit: settings.stopIncrementWhenOverLimit,
      }),
      stats: createDecisionStats(stats),
      nowSeconds,
      random: deps.random,
    },
    deciderOptions(settings),
  );
  const tracing = await startTracing({ ...tracingOptions(settings), logger });
  const api = createApiServer(
    { decide: traceDecisions(decide, tracing, 'POST /json'), health, logger },
    { host: settings.host, port: settings.port },
  );
  const tls = createTlsStats(stats);
  const countLoad = countCertificateLoads(stats);
  const tlsFiles = settings.grpcServerUseTls
    ? await watchTlsFiles(serverTlsFiles(settings), {
        logger,
        onAttempt: countLoad,
        onCertificate: (validity) => tls.setValidity('grpc_server', validity),
        nowMs: deps.nowMs,
      })
    : undefined;
  if (tlsFiles) countLoad(true);
  const grpc = new UnaryServer({
    handlers: {
      [shouldRateLimitPath]: createShouldRateLimit(
        traceDecisions(decide, tracing, shouldRateLimitPath.slice(1)),
      ),
    },
    health,
    serviceName: 'ratelimit',
    begin: createServerStats(stats, monotonicNow).begin,
    tls: tlsFiles && { files: tlsFiles, mutual: settings.grpcClientTlsCacert !== '' },
    guard: settings.grpcClientTlsSan === '' ? everyPeer : createSanGuard(settings.grpcClientTlsSan),
    logger,
    ...(settings.grpcServerUseTls && {
      handshakes: { logger, listener: 'grpc', onFailure: tls.handshakeFailures('grpc') },
    }),
    ...grpcServerOptions(settings),
  });

  // Started in this order and stopped in reverse: statistics are sent last, health fails first.
  lifecycle.add({ name: 'statistics', start: flusher.start, stop: flusher.close });
  lifecycle.add({ name: 'tracing', stop: () => tracing.shutdown() });
  // Before whatever may have to wait, so that a start that waits can be looked at.
  lifecycle.add({ name: 'debug server', start: startDebug, stop: ({ signal }) => debug.stop(signal) });
  lifecycle.add({ name: 'counter backend', start: backend.start, stop: backend.close });
  lifecycle.add({
    name: 'rules',
    start: ({ signal }) =>
      settings.forceStartWithoutInitialConfig ? startRulesLater() : ruleSource.start(rules.apply, { signal }),
    stop: ruleSource.close,
  });
  if (deps.warmUp) {
    lifecycle.add({
      name: 'warm-up',
      start: ({ signal }) =>
        warmUp({ backend, nowSeconds, random: deps.random, logger }, deciderOptions(settings), signal),
    });
  }
  lifecycle.add({
    name: 'HTTP server',
    start: async () => {
      ports.http = await nameListenSettings(api.start(), { host: 'HOST', port: 'PORT' });
    },
    stop: ({ signal }) => api.stop(signal),
  });
  lifecycle.add({
    name: 'gRPC server',
    start: async () => {
      const listening = grpc.start();
      // Errors of a unix path name its setting already.
      ports.grpc = await (settings.grpcUds === ''
        ? nameListenSettings(listening, { host: 'GRPC_HOST', port: 'GRPC_PORT' })
        : listening);
    },
    stop: async ({ signal }) => {
      await grpc.stop(signal);
      tlsFiles?.close();
    },
  });
  lifecycle.add(createTermination(health, settings.shutdownDelayMs));
  lifecycle.add({
    name: 'announcement',
    start: () =>
      logger.info(
        { ...ports, backend: settings.backendType, rules: rules.current()?.ruleCount ?? 0 },
        'listening',
      ),
  });
  return { lifecycle, health, stats, ports };

  /** The service does its work without this port: one that is taken is no reason not to start. */
  async function startDebug(): Promise<void> {
    try {
      ports.debug = await nameListenSettings(debug.start(), { host: 'DEBUG_HOST', port: 'DEBUG_PORT' });
    } catch (error) {
      const { debugHost: host, debugPort: port } = settings;
      logger.error({ err: error, host, port }, 'debug server not started');
    }
  }

  function startRulesLater(): void {
    ruleSource.start(rules.apply).catch((error: unknown) => lifecycle.fail('rules did not start', error));
  }
}

function createFlusher(
  settings: Settings,
  registry: StatsRegistry,
  { output, nowMs, logger }: AppDeps,
): StatsFlusher {
  const choice = chooseSink(sinkSwitches(settings));
  if (!choice.ok) {
    throw new TypeError('the choice of a sink was checked with the settings');
  }
  const sink =
    choice.sink === undefined
      ? undefined
      : statsSinks[choice.sink].create(statsSinkOptions(settings), { registry, output, logger });
  return createStatsFlusher({ flushIntervalMs: settings.statsFlushIntervalMs }, { registry, sink, nowMs });
}

function createOptionalLocalCache(sizeBytes: number, stats: StatsRegistry): LocalCache | undefined {
  if (sizeBytes === 0) {
    return undefined;
  }
  const cache = createLocalCache(sizeBytes);
  registerLocalCacheGauges(cache, stats);
  return cache;
}
