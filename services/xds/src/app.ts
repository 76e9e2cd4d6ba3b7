import {
  followTls,
  plaintextCredentials,
  type WatchedCredentials,
  watchServerCredentials,
} from '@tollgate/kit/grpc/credentials';
import { logGrpcLibrary } from '@tollgate/kit/grpc/library';
import { createSanGuard, everyPeer } from '@tollgate/kit/grpc/peer';
import { Health } from '@tollgate/kit/health';
import { nameListenSettings } from '@tollgate/kit/http-server';
import { createTermination, Lifecycle, type LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { addProcessMetrics } from '@tollgate/kit/metrics';
import { startTracing } from '@tollgate/kit/telemetry';
import { maskUrl } from '@tollgate/kit/text';
import type { TlsValidity } from '@tollgate/kit/tls';
import { Registry } from 'prom-client';
import { createAdminServer } from './admin/server.ts';
import { watchBearerTokens } from './ads/bearer-tokens.ts';
import { createClientRegistry } from './ads/limiters.ts';
import { createAdsServer } from './ads/server.ts';
import { createPipeline } from './catalog/pipeline.ts';
import { createSnapshotStore } from './catalog/snapshot.ts';
import { SecretCertificates } from './certificates/certificates.ts';
import {
  adsServerOptions,
  certificateOptions,
  chosenSource,
  grpcHost,
  kubeConfigOptions,
  type Settings,
  serverTlsFiles,
  settingsSpec,
  tracingOptions,
} from './config/settings.ts';
import { createApiClient } from './kube/client.ts';
import { currentNamespace, loadKubeConfig } from './kube/config.ts';
import { createLeaseElector, leaseIdentity } from './kube/lease.ts';
import { countReloads, createXdsMetrics, measureLimiters, type XdsMetrics } from './metrics.ts';
import { createFolderSource } from './sources/folder.ts';
import { createKubernetesSource } from './sources/kubernetes.ts';
import type { ResourceSource } from './sources/source.ts';
import { KubernetesEvents } from './status/events.ts';
import { createKubernetesLimiterReports } from './status/replica-reports.ts';
import type { LimiterReports } from './status/reported-limiters.ts';
import type { StatusWriter } from './status/writer.ts';
import { createKubernetesStatusWriter } from './status/writer.ts';
import { PipelineTrace } from './tracing.ts';

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
  readonly writer?: Pick<StatusWriter, 'put' | 'forget'>;
  /** Undefined where replicas tell each other nothing. */
  readonly reports?: LimiterReports;
  /** What else has to run before the source does. */
  readonly components: readonly LifecycleComponent[];
  /** What has to run in order to report, once limiters are served. */
  readonly reporting: readonly LifecycleComponent[];
  /** Undefined where certificates are files, or there are none. */
  readonly certificates?: SecretCertificates | undefined;
}

/** What a feed is made from. */
interface FeedDeps {
  readonly logger: Logger;
  readonly metrics: XdsMetrics;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly trace: PipelineTrace | undefined;
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
  const health = new Health();
  const served = health.component('snapshot', { healthy: false });
  const lifecycle = new Lifecycle({
    logger,
    drainTimeoutMs: settings.shutdownDelayMs + settings.drainTimeoutMs,
  });
  const ports = { grpc: settings.grpcPort, admin: settings.adminPort };

  const snapshots = createSnapshotStore();
  const clients = createClientRegistry();
  measureLimiters(clients, registry);
  snapshots.onChange(() => served.set(true));
  const tracing = await startTracing({ ...tracingOptions(settings), logger });
  const trace = tracing.enabled ? new PipelineTrace(tracing) : undefined;
  const feed = await feeds[sourceName](settings, { logger, metrics, nowMs, trace });
  const pipeline = createPipeline(
    { ...feed, store: snapshots, clients, metrics, logger, nowMs, trace },
    {
      debounceMs: settings.debounceMs,
      allowEmpty: settings.allowEmpty,
      // Files of a folder have one owner, who may give a domain to another namespace at once.
      domainGraceMs: sourceName === 'kubernetes' ? settings.domainGraceMs : 0,
    },
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
  const credentials = await chooseCredentials(settings, {
    logger,
    metrics,
    nowMs,
    certificates: feed.certificates,
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
      trace,
      ...(tokens && { tokens: tokens.guard }),
    },
    adsServerOptions(settings),
  );

  lifecycle.add({ name: 'tracing', stop: () => tracing.shutdown() });
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
  const { certificates } = feed;
  if (certificates !== undefined) {
    // Without a certificate there is no ADS server yet, and limiters must not be sent here.
    const issued = health.component('certificates', { healthy: false });
    const stopListening = certificates.onChange(() => {
      issued.set(true);
      stopListening();
    });
    lifecycle.add({ name: 'certificates', start: (context) => certificates.start(context) });
  }
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

/** Credentials of the ADS server: from Secrets, from files, or none. */
async function chooseCredentials(
  settings: Settings,
  { logger, metrics, nowMs, certificates }: Omit<FeedDeps, 'trace'> & Pick<Feed, 'certificates'>,
): Promise<WatchedCredentials> {
  const setValidity = (validity: TlsValidity): void => metrics.tls.setValidity('ads_server', validity);
  if (certificates !== undefined) {
    certificates.onChange(({ notBeforeMs, notAfterMs }) => {
      if (notBeforeMs !== undefined && notAfterMs !== undefined) setValidity({ notBeforeMs, notAfterMs });
    });
    return { credentials: followTls(certificates, { mutual: true }), close: () => certificates.close() };
  }
  if (settings.grpcTlsCert !== '') {
    const onAttempt = countReloads(metrics, 'tls');
    const deps = { logger, onAttempt, onCertificate: setValidity, nowMs };
    return await watchServerCredentials(serverTlsFiles(settings), deps);
  }
  const host = grpcHost(settings);
  if (settings.grpcPlaintext)
    logger.warn(
      { host },
      'ADS is served without TLS, as XDS_GRPC_PLAINTEXT says: use it in trusted networks only',
    );
  else logger.warn({ host }, 'ADS is served without TLS, and to this host only');
  return plaintextCredentials();
}

function createFolderFeed({ folder, namespaces }: Settings, deps: FeedDeps): Feed {
  return { source: createFolderSource({ folder, namespaces }, deps), components: [], reporting: [] };
}

async function createKubernetesFeed(
  settings: Settings,
  { logger, metrics, nowMs, trace }: FeedDeps,
): Promise<Feed> {
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
  const certificates = settings.grpcOwnCa
    ? new SecretCertificates(
        certificateOptions(settings, settings.podNamespace || currentNamespace(config)),
        { api, logger, nowMs, onAttempt: countReloads(metrics, 'tls') },
      )
    : undefined;
  if (!settings.statusEnabled) return { source, certificates, components: [connection], reporting: [] };

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
    { api, objects: source, leadership: elector, logger, metrics, trace },
  );
  const events = new KubernetesEvents({ api, leadership: elector, logger, instance: identity, nowMs });
  const reports = createKubernetesLimiterReports(
    { namespace, name: `${settings.leaseName}-limiters`, identity },
    { api, leadership: elector, logger },
  );
  return {
    source,
    certificates,
    writer: bothWriters(writer, events),
    reports,
    components: [connection],
    reporting: [
      { name: 'limiter reports', start: reports.start, stop: reports.close },
      { name: 'leader election', start: elector.start, stop: elector.close },
      { name: 'status writer', start: writer.start, stop: writer.close },
      { name: 'event writer', start: () => events.start(), stop: () => events.close() },
    ],
  };
}

/** Hands each status to both; they are started and closed on their own. */
function bothWriters(one: StatusWriter, other: StatusWriter): Pick<StatusWriter, 'put' | 'forget'> {
  return {
    put(status) {
      one.put(status);
      other.put(status);
    },
    forget(id) {
      one.forget(id);
      other.forget(id);
    },
  };
}
