import { logGrpcLibrary } from '@tollgate/kit/grpc/library-log';
import { createSanGuard, everyPeer } from '@tollgate/kit/grpc/peer-guard';
import { plaintextCredentials, watchServerCredentials } from '@tollgate/kit/grpc/server-credentials';
import { createHealth, type Health } from '@tollgate/kit/health';
import { createLifecycle, type Lifecycle, type LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { maskUrl } from '@tollgate/kit/mask-url';
import { addProcessMetrics } from '@tollgate/kit/metrics';
import { nameListenSettings } from '@tollgate/kit/name-listen-settings';
import { createTermination } from '@tollgate/kit/termination';
import { Registry } from 'prom-client';
import { createClientRegistry } from './clients/client-registry.ts';
import { createApiClient } from './kubernetes/api-client.ts';
import { currentNamespace, loadKubeConfig } from './kubernetes/kube-config.ts';
import { createLeaseElector, leaseIdentity } from './kubernetes/lease-elector.ts';
import { countReloads } from './metrics/count-reloads.ts';
import { measureLimiters } from './metrics/measure-limiters.ts';
import { createXdsMetrics, type XdsMetrics } from './metrics/xds-metrics.ts';
import { createPipeline } from './pipeline/pipeline.ts';
import type { LimiterReports } from './ports/limiter-reports.ts';
import type { ResourceSource } from './ports/resource-source.ts';
import type { StatusWriter } from './ports/status-writer.ts';
import { createFolderSource } from './resource-sources/folder/folder-source.ts';
import { createKubernetesSource } from './resource-sources/kubernetes/kubernetes-source.ts';
import { adsServerOptions, kubeConfigOptions, serverTlsFiles } from './settings/options.ts';
import { chosenSource, type Settings, settingsSpec } from './settings/settings.ts';
import { createSnapshotStore } from './snapshots/snapshot-store.ts';
import { createKubernetesLimiterReports } from './status-writers/kubernetes/kubernetes-limiter-reports.ts';
import { createKubernetesStatusWriter } from './status-writers/kubernetes/kubernetes-status-writer.ts';
import { createAdminServer } from './surfaces/admin/admin-server.ts';
import { createAdsServer } from './surfaces/grpc/ads-server.ts';
import { watchBearerTokens } from './surfaces/grpc/bearer-tokens.ts';

/** What the service takes from the process. */
export interface AppDeps {
  readonly logger: Logger;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}

/** The service, put together and not yet started. */
export interface App {
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  /** Ports in use once started; those set to 0 were chosen by the system. */
  readonly ports: { grpc: number; admin: number };
}

/** Where objects come from, and who reports back to them. */
interface Feed {
  readonly source: ResourceSource;
  /** Undefined where objects have no status. */
  readonly writer?: StatusWriter;
  /** Undefined where replicas tell each other nothing. */
  readonly reports?: LimiterReports;
  /** What else has to run before the source does. */
  readonly components: readonly LifecycleComponent[];
  /** What has to run in order to report, once limiters are served. */
  readonly reporting: readonly LifecycleComponent[];
}

/** What a feed is made from. */
interface FeedDeps {
  readonly logger: Logger;
  readonly metrics: XdsMetrics;
}

/** The kinds of source; a new one is an entry here and a name in the setting XDS_SOURCE. */
const feeds = { folder: createFolderFeed, kubernetes: createKubernetesFeed };

/** Puts the service together: the one place that knows every part. */
export async function buildApp(settings: Settings, { logger, nowMs }: AppDeps): Promise<App> {
  // Process-wide, like the library's log itself; before anything of it can have something to say.
  logGrpcLibrary(logger);
  const registry = new Registry();
  addProcessMetrics(registry);
  const sourceName = chosenSource(settings);
  const metrics = createXdsMetrics(registry, {
    source: sourceName,
    electsLeader: sourceName === 'kubernetes' && settings.statusEnabled,
  });
  const health = createHealth();
  const served = health.component('snapshot', { healthy: false });
  const lifecycle = createLifecycle({
    logger,
    drainTimeoutMs: settings.shutdownDelayMs + settings.drainTimeoutMs,
  });
  const ports = { grpc: settings.grpcPort, admin: settings.adminPort };

  const snapshots = createSnapshotStore();
  const clients = createClientRegistry();
  measureLimiters(clients, registry);
  snapshots.onChange(() => served.set(true));
  const feed = await feeds[sourceName](settings, { logger, metrics });
  const pipeline = createPipeline(
    { ...feed, store: snapshots, clients, metrics, logger, nowMs },
    { debounceMs: settings.debounceMs, allowEmpty: settings.allowEmpty },
  );
  const admin = createAdminServer(
    { registry, pipeline, snapshots, clients, health, logger, nowMs, sourceName },
    { host: settings.adminHost, port: settings.adminPort },
  );
  const tokens =
    settings.tokenFile === ''
      ? undefined
      : await watchBearerTokens(settings.tokenFile, {
          logger,
          onAttempt: countReloads(metrics, 'tokens'),
        });
  const credentials =
    settings.grpcTlsCert === ''
      ? plaintextCredentials()
      : await watchServerCredentials(serverTlsFiles(settings), {
          logger,
          onAttempt: countReloads(metrics, 'tls'),
          onCertificate: (validity) => metrics.tls.setValidity('ads_server', validity),
          nowMs,
        });
  const ads = createAdsServer(
    {
      snapshots,
      clients,
      health,
      credentials: credentials.credentials,
      guard: settings.grpcClientSan === '' ? everyPeer : createSanGuard(settings.grpcClientSan),
      metrics,
      logger,
      nowMs,
      ...(tokens && { tokens: tokens.guard }),
    },
    adsServerOptions(settings),
  );

  // Started in this order and stopped in reverse. The admin server comes first, so that a start that waits can be looked at.
  lifecycle.add({
    name: 'admin server',
    start: async () => {
      ports.admin = await nameListenSettings(admin.start(), {
        host: settingsSpec.adminHost.env,
        port: settingsSpec.adminPort.env,
      });
    },
    stop: ({ signal }) => admin.stop(signal),
  });
  for (const component of feed.components) lifecycle.add(component);
  lifecycle.add({ name: 'source', start: pipeline.start, stop: pipeline.close });
  lifecycle.add({
    name: 'ADS server',
    start: async () => {
      ports.grpc = await nameListenSettings(ads.start(), {
        host: settingsSpec.grpcHost.env,
        port: settingsSpec.grpcPort.env,
      });
    },
    stop: async ({ signal }) => {
      await ads.stop(signal);
      credentials.close();
      tokens?.close();
    },
  });
  // Stopped before the server that they report of: limiters that are sent to another replica have not gone.
  for (const component of feed.reporting) lifecycle.add(component);
  lifecycle.add(createTermination(health, settings.shutdownDelayMs));
  lifecycle.add({
    name: 'announcement',
    start: () => logger.info({ ...ports, source: sourceName }, 'listening'),
  });
  return { lifecycle, health, ports };
}

function createFolderFeed({ folder, namespaces }: Settings, deps: FeedDeps): Feed {
  return { source: createFolderSource({ folder, namespaces }, deps), components: [], reporting: [] };
}

async function createKubernetesFeed(settings: Settings, { logger, metrics }: FeedDeps): Promise<Feed> {
  if (settings.folder !== '')
    logger.warn(
      { folder: settings.folder },
      'XDS_FOLDER has no effect: objects come from a cluster; for the folder set XDS_SOURCE=folder',
    );
  const config = await loadKubeConfig(kubeConfigOptions(settings));
  const api = createApiClient(config);
  logger.info(
    { server: maskUrl(api.server), context: config.getCurrentContext(), namespaces: settings.namespaces },
    'objects come from a cluster',
  );
  const source = createKubernetesSource(
    { namespaces: settings.namespaces, resyncMs: settings.resyncIntervalMs },
    { api, logger, metrics },
  );
  const connection: LifecycleComponent = { name: 'API client', stop: () => api.close() };
  if (!settings.statusEnabled) return { source, components: [connection], reporting: [] };

  const namespace = settings.leaseNamespace || settings.podNamespace || currentNamespace(config);
  const identity = leaseIdentity(settings.podName);
  const elector = createLeaseElector(
    {
      namespace,
      name: settings.leaseName,
      identity,
      leaseDurationMs: settings.leaseDurationMs,
      renewDeadlineMs: settings.leaseRenewDeadlineMs,
      retryPeriodMs: settings.leaseRetryPeriodMs,
    },
    { api, logger, metrics },
  );
  const writer = createKubernetesStatusWriter(
    { debounceMs: settings.statusDebounceMs },
    { api, objects: source, leadership: elector, logger, metrics },
  );
  const reports = createKubernetesLimiterReports(
    { namespace, name: `${settings.leaseName}-limiters`, identity },
    { api, leadership: elector, logger },
  );
  return {
    source,
    writer,
    reports,
    components: [connection],
    reporting: [
      { name: 'limiter reports', start: reports.start, stop: reports.close },
      { name: 'leader election', start: elector.start, stop: elector.close },
      { name: 'status writer', start: writer.start, stop: writer.close },
    ],
  };
}
