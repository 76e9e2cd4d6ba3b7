import type { Writable } from 'node:stream';
import { createSanGuard, everyPeer } from '@tollgate/kit/grpc/peer';
import { UnaryServer } from '@tollgate/kit/grpc/unary-server';
import { Health } from '@tollgate/kit/health';
import { type HttpServer, nameListenSettings } from '@tollgate/kit/http-server';
import { createTermination, Lifecycle } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { startTracing, type Tracing } from '@tollgate/kit/telemetry';
import { hostAndPort } from '@tollgate/kit/text';
import { maxTimerMs, monotonicNow } from '@tollgate/kit/time';
import { type WatchedTls, watchTlsFiles } from '@tollgate/kit/tls';
import type { CounterBackend } from './backends/counter-backend.ts';
import { counterBackends } from './backends/counter-backends.ts';
import type { Settings } from './config/settings.ts';
import type { Context } from './context.ts';
import { createApiServer } from './http/api-server.ts';
import { createDebugServer } from './http/debug-server.ts';
import { LocalCache } from './ratelimit/local-cache.ts';
import {
  type Decide,
  type DecisionContext,
  decide,
  getDecisionOptions,
  shouldRateLimit,
  shouldRateLimitPath,
} from './ratelimit/service.ts';
import { DecisionStats } from './ratelimit/stats.ts';
import { traceDecisions } from './ratelimit/tracing.ts';
import { warmUp } from './ratelimit/warm-up.ts';
import { RuleStore, ruleSources } from './rules/rule-store.ts';
import { countReservedTags } from './stats/names.ts';
import type { ProcessMetrics } from './stats/prometheus.ts';
import { StatsRegistry } from './stats/registry.ts';
import { createCallTimer, createLoadCounter, createTlsStats } from './stats/server-stats.ts';
import { createSink, StatsFlusher } from './stats/sinks.ts';
import { formatStats } from './stats/text.ts';
import type { SupervisorLink } from './workers/supervisor-link.ts';

export interface AppOptions {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly random: () => number;
  /** Where statistics are written when no sink is chosen. */
  readonly output: Writable;
  /** Makes the first decisions as fast as later ones; delays the start by about 0.2 s. */
  readonly warmUp: boolean;
  /** In a worker: ports are shared, and the supervisor has the debug port and all sinks. */
  readonly supervisor?: SupervisorLink;
}

export interface App {
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  readonly stats: StatsRegistry;
  /** Ports in use once started; the system chooses those set to 0. */
  readonly ports: Ports;
}

interface Ports {
  http: number;
  grpc: number;
  debug: number;
}

export async function buildApp(settings: Settings, options: AppOptions): Promise<App> {
  const { logger, nowMs, supervisor } = options;
  if (usesGrpcClient(settings)) await logGrpcClient(logger);
  const context = createContext(options);
  const { stats } = context;
  countReservedTags(stats, settings.extraTags);
  const lifecycle = new Lifecycle({
    logger,
    drainTimeoutMs: Math.min(maxTimerMs, settings.shutdownDelayMs + settings.drainTimeoutMs),
  });
  const ports: Ports = { http: settings.port, grpc: settings.grpcPort, debug: settings.debugPort };
  const sink = supervisor
    ? undefined
    : await createSink(settings, { registry: stats, output: options.output, logger });
  const flusher = new StatsFlusher({
    registry: stats,
    sink,
    flushIntervalMs: settings.statsFlushIntervalMs,
    nowMs,
  });
  const rules = createRuleStore(settings, context);
  const createBackend = await counterBackends[settings.backendType]();
  const backend = await createBackend(settings, context);
  const tracing = settings.tracingEnabled ? await startServiceTracing(settings, logger) : undefined;

  // Started in this order and stopped in reverse: statistics are sent last, health fails first.
  lifecycle.add({ name: 'statistics', start: () => flusher.start(), stop: () => flusher.close() });
  lifecycle.add({ name: 'tracing', stop: () => tracing?.shutdown() });
  // Before everything that may have to wait, so that a slow start can be inspected.
  const debug = createDebugServer(
    {
      rules: () => rules.current(),
      backend,
      nowSeconds: context.nowSeconds,
      cacheKeyPrefix: settings.cacheKeyPrefix,
      formatStats: () => supervisor?.getStatistics() ?? formatStats(stats),
      logger,
    },
    { host: settings.debugHost, port: settings.debugPort },
  );
  if (supervisor === undefined) addDebugServer(lifecycle, settings, { debug, logger, ports });
  else await connectToSupervisor(supervisor, settings, { lifecycle, debug, stats });
  lifecycle.add({
    name: 'counter backend',
    start: (startOptions) => backend.start(startOptions),
    stop: () => backend.close(),
  });
  await addRuleSource(lifecycle, settings, context, rules);
  const decisions = createDecisionContext(settings, context, { rules, backend });
  if (options.warmUp) {
    lifecycle.add({
      name: 'warm-up',
      start: ({ signal }) => warmUp({ ...decisions, backend, logger }, signal),
    });
  }
  const decideCall: Decide = (request, call) => decide(decisions, request, call);
  const trace = (callName: string): Decide =>
    tracing === undefined
      ? decideCall
      : traceDecisions(decideCall, tracing, { callName, backendType: settings.backendType });
  // Rule files and modules leave tens of megabytes of garbage; V8 would keep them while it is idle.
  lifecycle.add({ name: 'garbage collection', start: collectGarbage });
  if (supervisor !== undefined) {
    lifecycle.add({ name: 'permission to listen', start: ({ signal }) => supervisor.waitForListen(signal) });
  }
  const reusePort = supervisor !== undefined;
  addApiServer(lifecycle, settings, context, { decide: trace('POST /json'), ports, reusePort });
  await addGrpcServer(lifecycle, settings, context, {
    decide: trace(shouldRateLimitPath.slice(1)),
    ports,
    reusePort,
  });
  lifecycle.add(createTermination(context.health, settings.shutdownDelayMs));
  lifecycle.add({
    name: 'announcement',
    async start() {
      const rulesLoaded = rules.current()?.ruleCount ?? 0;
      logger.info({ ...ports, backend: settings.backendType, rules: rulesLoaded }, 'listening');
      await supervisor?.announceListening();
    },
  });
  return { lifecycle, health: context.health, stats, ports };
}

function usesGrpcClient({ configType, tracingEnabled, tracingExporterProtocol }: Settings): boolean {
  return configType === 'GRPC_XDS_SOTW' || (tracingEnabled && tracingExporterProtocol === 'grpc');
}

/** Process-wide, and before the library logs anything. */
async function logGrpcClient(logger: Logger): Promise<void> {
  const { logGrpcLibrary } = await import('@tollgate/kit/grpc/library');
  logGrpcLibrary(logger);
}

function createContext({ logger, nowMs, random }: AppOptions): Context {
  return {
    logger,
    health: new Health(),
    stats: new StatsRegistry(),
    nowMs,
    nowSeconds: () => Math.floor(nowMs() / 1000),
    random,
  };
}

function createRuleStore(settings: Settings, { health, logger, stats }: Context): RuleStore {
  return new RuleStore({
    stats,
    logger,
    health: settings.healthyWithAtLeastOneConfigLoaded
      ? health.component('config', { healthy: false })
      : undefined,
  });
}

function createDecisionContext(
  settings: Settings,
  { nowSeconds, random, stats }: Context,
  { rules, backend }: { readonly rules: RuleStore; readonly backend: CounterBackend },
): DecisionContext {
  const { localCacheSizeBytes, stopIncrementWhenOverLimit } = settings;
  const localCache = localCacheSizeBytes === 0 ? undefined : new LocalCache(localCacheSizeBytes);
  localCache?.registerGauges(stats);
  return {
    rules: () => rules.current(),
    backend,
    localCache,
    stopIncrementWhenOverLimit,
    stats: new DecisionStats(stats),
    nowSeconds,
    random,
    options: getDecisionOptions(settings),
  };
}

/** The service works without the debug server: a port that is in use does not prevent the start. */
function addDebugServer(
  lifecycle: Lifecycle,
  { debugHost: host, debugPort: port }: Settings,
  { debug, logger, ports }: { readonly debug: HttpServer; readonly logger: Logger; ports: Ports },
): void {
  lifecycle.add({
    name: 'debug server',
    async start() {
      try {
        ports.debug = await nameListenSettings(debug.start(), { host: 'DEBUG_HOST', port: 'DEBUG_PORT' });
      } catch (error) {
        logger.error({ err: error, host, port }, 'debug server not started');
      }
    },
    stop: ({ signal }) => debug.stop(signal),
  });
}

/** Lets the supervisor stop this worker, read its statistics and pass debug connections. */
async function connectToSupervisor(
  supervisor: SupervisorLink,
  settings: Settings,
  {
    lifecycle,
    debug,
    stats,
  }: { readonly lifecycle: Lifecycle; readonly debug: HttpServer; readonly stats: StatsRegistry },
): Promise<void> {
  const processMetrics = settings.usePullMetrics ? await startProcessMetrics() : undefined;
  lifecycle.add({ name: 'last report', stop: () => supervisor.reportFinally() });
  lifecycle.add({ name: 'debug connections', stop: ({ signal }) => debug.stop(signal) });
  supervisor.connect({
    stats,
    onStop: (reason) => void lifecycle.stop(reason),
    onDebugConnection: (socket) => debug.accept(socket),
    getProcessMetrics: async () => processMetrics?.read(),
  });
}

async function startProcessMetrics(): Promise<ProcessMetrics> {
  const { ProcessMetrics } = await import('./stats/prometheus.ts');
  const metrics = new ProcessMetrics();
  metrics.start();
  return metrics;
}

async function addRuleSource(
  lifecycle: Lifecycle,
  settings: Settings,
  context: Context,
  rules: RuleStore,
): Promise<void> {
  const createSource = await ruleSources[settings.configType]();
  const source = createSource(settings, context);
  lifecycle.add({
    name: 'rules',
    async start({ signal }) {
      if (!settings.forceStartWithoutInitialConfig) {
        await source.start((load) => rules.apply(load), { signal });
        return;
      }
      source
        .start((load) => rules.apply(load))
        .catch((error: unknown) => lifecycle.fail('rules did not start', error));
    },
    stop: () => source.close(),
  });
}

interface ServerParts {
  readonly decide: Decide;
  readonly reusePort: boolean;
  ports: Ports;
}

function addApiServer(
  lifecycle: Lifecycle,
  { host, port }: Settings,
  { health, logger }: Context,
  { decide, ports, reusePort }: ServerParts,
): void {
  const api = createApiServer({ decide, health, logger }, { host, port, reusePort });
  lifecycle.add({
    name: 'HTTP server',
    async start() {
      ports.http = await nameListenSettings(api.start(), { host: 'HOST', port: 'PORT' });
    },
    stop: ({ signal }) => api.stop(signal),
  });
}

async function addGrpcServer(
  lifecycle: Lifecycle,
  settings: Settings,
  context: Context,
  { decide, ports, reusePort }: ServerParts,
): Promise<void> {
  // Created without TLS, too, so that the series exist from the start.
  const countLoad = createLoadCounter(context.stats);
  const tls = settings.grpcServerUseTls ? await watchServerTls(settings, context, countLoad) : undefined;
  const grpc = createGrpcServer(settings, context, { decide, tls, reusePort });
  lifecycle.add({
    name: 'gRPC server',
    async start() {
      const listening = grpc.start();
      // Errors of a unix path name its setting already.
      ports.grpc = await (settings.grpcUds === ''
        ? nameListenSettings(listening, { host: 'GRPC_HOST', port: 'GRPC_PORT' })
        : listening);
    },
    async stop({ signal }) {
      await grpc.stop(signal);
      tls?.close();
    },
  });
}

async function watchServerTls(
  settings: Settings,
  { logger, nowMs, stats }: Context,
  countLoad: (succeeded: boolean) => void,
): Promise<WatchedTls> {
  const files = {
    certFile: settings.grpcServerTlsCert,
    keyFile: settings.grpcServerTlsKey,
    caFile: settings.grpcClientTlsCacert,
  };
  const tls = await watchTlsFiles(files, {
    logger,
    onAttempt: countLoad,
    onCertificate: (validity) => createTlsStats(stats).setValidity('grpc_server', validity),
    nowMs,
  });
  countLoad(true);
  return tls;
}

function createGrpcServer(
  settings: Settings,
  { health, logger, stats }: Context,
  {
    decide,
    tls,
    reusePort,
  }: { readonly decide: Decide; readonly tls: WatchedTls | undefined; readonly reusePort: boolean },
): UnaryServer {
  return new UnaryServer({
    handlers: { [shouldRateLimitPath]: shouldRateLimit(decide) },
    health,
    serviceName: 'ratelimit',
    begin: createCallTimer(stats, monotonicNow),
    tls: tls && { files: tls, mutual: settings.grpcClientTlsCacert !== '' },
    guard: settings.grpcClientTlsSan === '' ? everyPeer : createSanGuard(settings.grpcClientTlsSan),
    logger,
    ...(tls && {
      handshakes: { logger, listener: 'grpc', onFailure: createTlsStats(stats).handshakeFailures('grpc') },
    }),
    address:
      settings.grpcUds === ''
        ? hostAndPort(settings.grpcHost, settings.grpcPort)
        : `unix:${settings.grpcUds}`,
    addressSetting: 'GRPC_UDS',
    reusePort,
    maxConnectionAgeMs: settings.grpcMaxConnectionAgeMs,
    maxConnectionAgeGraceMs: settings.grpcMaxConnectionAgeGraceMs,
    maxConnections: settings.grpcMaxConnections,
  });
}

function startServiceTracing(settings: Settings, logger: Logger): Promise<Tracing> {
  return startTracing({
    enabled: settings.tracingEnabled,
    protocol: settings.tracingExporterProtocol,
    serviceName: settings.tracingServiceName,
    serviceNamespace: settings.tracingServiceNamespace,
    serviceInstanceId: settings.tracingServiceInstanceId,
    samplingRate: settings.tracingSamplingRate,
    logger,
  });
}

async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
}
