import type { Writable } from 'node:stream';
import { Health } from '@tollgate/kit/health';
import { createTermination, Lifecycle } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { StartReport } from '@tollgate/kit/start-report';
import { startTracing, type Tracing } from '@tollgate/kit/telemetry';
import { maxTimerMs } from '@tollgate/kit/time';
import type { Settings } from './config/settings.ts';
import type { Context } from './context.ts';
import { type Decide, type DecisionContext, decide, shouldRateLimitPath } from './decision/decide.ts';
import { LocalCache } from './decision/local-cache.ts';
import { getDecisionOptions } from './decision/options.ts';
import { DecisionStats } from './decision/stats.ts';
import { createStoreFailures } from './decision/store-failure.ts';
import { traceDecisions } from './decision/tracing.ts';
import { UsageChecks } from './decision/usage-checks.ts';
import { warmUp } from './decision/warm-up.ts';
import { createDebugServer } from './http/debug-server.ts';
import { countReservedTags } from './metrics/names.ts';
import { StatsRegistry } from './metrics/registry.ts';
import { createMeasuredBuffers } from './metrics/server-stats.ts';
import { createSink, StatsFlusher } from './metrics/sinks.ts';
import type { CounterApi } from './operator-api/counter-api.ts';
import { addRuleSources, createRuleStore, createTrial } from './rule-sources.ts';
import type { RuleStore } from './rules/rule-store.ts';
import { addAdminServer, addApiServer, addDebugServer, addGrpcServer, type Ports } from './servers.ts';
import type { CounterStore } from './stores/counter-store.ts';
import { Leases } from './stores/leases.ts';
import { counterStores } from './stores/registry.ts';
import type { Trial } from './trial/trial.ts';

export interface AppOptions {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly random: () => number;
  /** Where statistics are written when no sink is chosen. */
  readonly output: Writable;
  /** Makes the first decisions as fast as later ones; delays the start by about 0.2 s. */
  readonly warmUp: boolean;
  readonly report: StartReport;
}

export interface App {
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  readonly stats: StatsRegistry;
  readonly ports: Ports;
}

export async function buildApp(settings: Settings, options: AppOptions): Promise<App> {
  const { logger } = options;
  if (usesGrpcClient(settings)) await logGrpcClient(logger);
  const context = createContext(options);
  const { stats } = context;
  countReservedTags(stats, settings.extraTags);
  const lifecycle = new Lifecycle({
    logger,
    drainTimeoutMs: Math.min(maxTimerMs, settings.shutdownDelayMs + settings.drainTimeoutMs),
  });
  const ports: Ports = { http: settings.port, grpc: settings.grpcPort, debug: settings.debugPort };
  const rules = createRuleStore(settings, context);
  const createStore = await counterStores[settings.backendType].load();
  const store = await createStore(settings, context);
  const counterApi = await createCounterApi(settings, context, store);
  const trial = createTrial(settings, context, { inForce: store, overrides: counterApi?.overrides });
  const leases = new Leases(store);
  const decisions = createDecisionContext(settings, context, { rules, store: leases, trial, counterApi });

  // Started in this order and stopped in reverse: statistics are sent last, health fails first.
  await addStatistics(lifecycle, settings, options, stats);
  const trace = await addTracing(lifecycle, settings, logger);
  // The debug port precedes everything that may have to wait, so that a slow start can be
  // inspected.
  const buffers = createMeasuredBuffers(settings.clientBufferMaxBytes, context);
  const debug = createDebugServer(
    {
      decisions,
      store,
      stats,
      buffers,
      logger,
    },
    { host: settings.debugHost, port: settings.debugPort },
  );
  addDebugServer(lifecycle, settings, { debug, logger, ports });
  lifecycle.add({
    name: 'counter backend',
    start: (startOptions) => store.start(startOptions),
    stop: () => store.close(),
  });
  await addRuleSources(lifecycle, settings, context, { rules, trial });
  const counterApiHandlers = counterApi?.connect(lifecycle, { decisions, leases, report: options.report });
  if (options.warmUp) {
    lifecycle.add({
      name: 'warm-up',
      start: ({ signal }) => warmUp(settings, { createStore, context, signal }),
    });
  }
  // Rule files and modules leave tens of megabytes of garbage; V8 would keep them while it is idle.
  lifecycle.add({ name: 'garbage collection', start: collectGarbage });
  const decideCall: Decide = (request, call) => decide(decisions, request, call);
  const decideJson = trace(decideCall, 'POST /json');
  addApiServer(lifecycle, settings, context, { decide: decideJson, buffers, ports });
  const decideGrpc = trace(decideCall, shouldRateLimitPath.slice(1));
  await addGrpcServer(lifecycle, settings, context, { decide: decideGrpc, buffers, ports });
  if (counterApiHandlers !== undefined) {
    await addAdminServer(lifecycle, settings, context, { handlers: counterApiHandlers, buffers, ports });
  }
  lifecycle.add(createTermination(context.health, settings.shutdownDelayMs));
  lifecycle.add({
    name: 'announcement',
    start() {
      const rulesLoaded = rules.current()?.ruleCount ?? 0;
      logger.info({ ...ports, store: settings.backendType, rules: rulesLoaded }, 'listening');
    },
  });
  lifecycle.add(options.report);
  return { lifecycle, health: context.health, stats, ports };
}

/** Its code is loaded only with ADMIN_PORT. */
async function createCounterApi(
  settings: Settings,
  context: Context,
  store: CounterStore,
): Promise<CounterApi | undefined> {
  if (settings.adminPort === 0) return undefined;
  const { CounterApi } = await import('./operator-api/counter-api.ts');
  return new CounterApi(settings, context, store);
}

async function addStatistics(
  lifecycle: Lifecycle,
  settings: Settings,
  { logger, nowMs, output }: AppOptions,
  registry: StatsRegistry,
): Promise<void> {
  const sink = await createSink(settings, { registry, output, logger });
  const { statsFlushIntervalMs: flushIntervalMs } = settings;
  const flusher = new StatsFlusher({ registry, sink, flushIntervalMs, nowMs });
  lifecycle.add({ name: 'statistics', start: () => flusher.start(), stop: () => flusher.close() });
}

/** Returns what puts decisions into spans. OpenTelemetry is loaded only when tracing is enabled. */
async function addTracing(
  lifecycle: Lifecycle,
  settings: Settings,
  logger: Logger,
): Promise<(decideCall: Decide, callName: string) => Decide> {
  if (!settings.tracingEnabled) return (decideCall) => decideCall;
  const tracing = await startServiceTracing(settings, logger);
  lifecycle.add({ name: 'tracing', stop: () => tracing.shutdown() });
  const { backendType } = settings;
  return (decideCall, callName) => traceDecisions(decideCall, tracing, { callName, backendType });
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

function createDecisionContext(
  settings: Settings,
  context: Context,
  {
    rules,
    store,
    trial,
    counterApi,
  }: {
    readonly rules: RuleStore;
    readonly store: Leases;
    readonly trial: Trial | undefined;
    readonly counterApi: CounterApi | undefined;
  },
): DecisionContext {
  const { nowSeconds, random, stats } = context;
  const { localCacheSizeBytes, stopIncrementWhenOverLimit } = settings;
  const localCache = localCacheSizeBytes === 0 ? undefined : new LocalCache(localCacheSizeBytes);
  localCache?.registerGauges(stats);
  return {
    rules: () => rules.current(),
    store,
    localCache,
    stopIncrementWhenOverLimit,
    stats: new DecisionStats(stats),
    nowSeconds,
    random,
    options: getDecisionOptions(settings),
    storeFailures: createStoreFailures(settings, context),
    usageChecks: new UsageChecks(context),
    trial,
    activity: counterApi?.activity,
    overrides: counterApi?.overrides,
  };
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
