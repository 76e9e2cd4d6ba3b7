import type { KubeConfig } from '@kubernetes/client-node';
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
import { addProcessMetrics } from '@tollgate/kit/metrics';
import { startTracing } from '@tollgate/kit/telemetry';
import { maskUrl } from '@tollgate/kit/text';
import type { TlsValidity } from '@tollgate/kit/tls';
import { Registry } from 'prom-client';
import { buildAdminServer } from './admin/server.ts';
import { createAdmission } from './admission/components.ts';
import { watchBearerTokens } from './ads/bearer-tokens.ts';
import { ResponseCache } from './ads/exchange.ts';
import { LimiterRegistry } from './ads/limiters.ts';
import { AdsServer } from './ads/server.ts';
import type { ServedType } from './ads/stream.ts';
import { type Snapshot, SnapshotStore } from './catalog/snapshot.ts';
import type { HoldStore, ResourceSource } from './catalog/source.ts';
import { SecretCertificates } from './certificates/certificates.ts';
import {
  getGrpcHost,
  getSourceName,
  type Settings,
  type SourceName,
  settingsSpec,
  toAdsListenOptions,
  toCertificateOptions,
  toTlsFiles,
  toTracingOptions,
} from './config/settings.ts';
import { type Context, PipelineTrace } from './context.ts';
import { type DeletionOptions, memoryHold } from './deletions.ts';
import { ApiClient } from './kube/client.ts';
import { currentNamespace, loadKubeConfig } from './kube/config.ts';
import { type Leadership, LeaseElector, replicaIdentity } from './kube/lease.ts';
import { rateLimitConfigs } from './kube/resources.ts';
import { countReloads, registerLimiters, registerMetrics } from './metrics.ts';
import { Pipeline } from './pipeline.ts';
import { accessConfigType } from './policies/access-config.ts';
import { type AllowedHosts, parseHostsByNamespace } from './policies/allowed-hosts.ts';
import { PolicyLog } from './policies/policy-log.ts';
import { PolicyPipeline } from './policies/policy-pipeline.ts';
import type { PolicyReporter } from './policies/policy-result.ts';
import type { PolicySource } from './policies/policy-source.ts';
import { AllowFile } from './sources/allow-file.ts';
import { FolderSource } from './sources/folder.ts';
import { HeldConfigMap } from './sources/held-config-map.ts';
import { KubernetesSource } from './sources/kubernetes.ts';
import { KubernetesPolicies } from './sources/kubernetes-policies.ts';
import { LastValidFiles } from './sources/last-valid-files.ts';
import { KubernetesEvents } from './status/events.ts';
import { countByState, summarizeLimiters } from './status/limiter-report.ts';
import type { ReportedMatches } from './status/matched-rules.ts';
import { PolicyStatusWriter } from './status/policy-writer.ts';
import { ReplicaReports } from './status/replica-reports.ts';
import type { StatusWriter } from './status/reporter.ts';
import { readStoredStatus, type StoredStatus } from './status/status-manifest.ts';
import { KubernetesStatusWriter } from './status/writer.ts';

/** The service, before it is started. */
export interface App {
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  /** Ports in use once started; those set to 0 are chosen by the system. */
  readonly ports: { grpc: number; admin: number; admission: number };
}

/** Composes the service. */
export async function buildApp(
  settings: Settings,
  { logger, nowMs }: Pick<Context, 'logger' | 'nowMs'>,
): Promise<App> {
  // Process-wide, and before the library can log.
  logGrpcLibrary(logger);
  const registry = new Registry();
  addProcessMetrics(registry);
  const source = getSourceName(settings);
  const electsLeader = source === 'kubernetes' && settings.statusEnabled;
  const admits = settings.admissionEnabled;
  const metrics = registerMetrics(registry, {
    source,
    electsLeader,
    admits,
    registersWebhook: settings.grpcOwnCa,
  });
  const health = new Health();
  const served = health.component('snapshot', { healthy: false });
  const snapshots = new SnapshotStore(nowMs);
  const stopWaiting = snapshots.onChange(() => {
    served.set(true);
    stopWaiting();
  });
  const limiters = new LimiterRegistry();
  const access = { snapshots: new SnapshotStore(nowMs), limiters: new LimiterRegistry() };
  registerLimiters(() => countByState(limiters.all(), (name) => snapshots.currentOf(name)), registry);
  const tracing = await startTracing({ ...toTracingOptions(settings), logger });
  const trace = tracing.enabled ? new PipelineTrace(tracing) : undefined;
  const context: Context = { logger, metrics, nowMs, trace };

  const observer: { pipeline: Pipeline | undefined } = { pipeline: undefined };
  const reportMatches = () => observer.pipeline?.matchedRules?.report(snapshots.current());
  const parts = { snapshots, limiters, reportMatches };
  const environment = await environments[source](context, settings, parts);
  const pipeline = new Pipeline(context, {
    ...environment,
    snapshots,
    waitsForPolicies: environment.policies !== undefined,
    limiters,
    debounceMs: settings.debounceMs,
    allowEmpty: settings.allowEmpty,
    deletions: toDeletionOptions(settings, environment.holdStore),
    unmatchedAfterMs: electsLeader ? settings.unmatchedAfterMs : 0,
    // The files of a folder have one owner, who may move a domain to another namespace at once.
    domainGraceMs: source === 'kubernetes' ? settings.domainGraceMs : 0,
    anyDomainNamespaces: source === 'kubernetes' ? settings.anyDomainNamespaces : ['*'],
  });
  observer.pipeline = pipeline;
  const policies =
    environment.policies &&
    new PolicyPipeline(context, {
      source: environment.policies,
      limiters: { snapshots, clients: limiters },
      authServers: { snapshots: access.snapshots, clients: access.limiters },
      setRules: (rules) => pipeline.setPolicyRules(rules),
      reporters: [new PolicyLog(logger), ...(environment.policyReporters ?? [])],
      health: health.component('access policies', { healthy: true }),
      debounceMs: settings.debounceMs,
      allowedHosts: environment.allowedHosts ?? toAllowedHosts(settings),
      allowEmpty: settings.allowEmpty,
      // An API server that lists no policies has none; a folder may not be mounted.
      allowEmptyStart: settings.allowEmpty && (source !== 'folder' || settings.allowNoPolicies),
      deletions: toDeletionOptions(settings, environment.policyHoldStore ?? memoryHold),
    });
  const admin = buildAdminServer(
    { registry, pipeline, policies, snapshots, limiters, health, logger, nowMs, sourceName: source },
    { host: settings.adminHost, port: settings.adminPort, token: settings.adminToken },
  );
  const { certificates } = environment;
  const ads = await composeAds(context, settings, {
    snapshots,
    limiters,
    health,
    certificates,
    otherTypes: new Map([[accessConfigType, { ...access, cache: new ResponseCache(accessConfigType) }]]),
    onMatches: (snapshot, matchedRules) => pipeline.matchedRules?.add(snapshot, matchedRules),
  });

  const ports = { grpc: settings.grpcPort, admin: settings.adminPort, admission: settings.admissionPort };
  const drainTimeoutMs = settings.shutdownDelayMs + settings.drainTimeoutMs;
  const lifecycle = new Lifecycle({ logger, drainTimeoutMs });
  // Components start in this order and stop in reverse. The admin server comes first, to observe a
  // start that waits.
  const components = [
    { name: 'tracing', stop: () => tracing.shutdown() },
    {
      name: 'admin server',
      start: async () => {
        const { adminHost, adminPort } = settingsSpec;
        ports.admin = await nameListenSettings(admin.start(), { host: adminHost.env, port: adminPort.env });
      },
      stop: ({ signal }: { readonly signal: AbortSignal }) => admin.stop(signal),
    },
    ...environment.components,
    // The source of policies may be a part of the other source, which must not deliver before.
    ...(policies ? [{ name: 'policies', start: () => policies.start(), stop: () => policies.close() }] : []),
    { name: 'source', start: () => pipeline.start(), stop: () => pipeline.close() },
    ...(certificates === undefined ? [] : [certificatesComponent(certificates, health)]),
    {
      name: 'ADS server',
      start: async () => {
        const { grpcHost, grpcPort } = settingsSpec;
        ports.grpc = await nameListenSettings(ads.server.start(), { host: grpcHost.env, port: grpcPort.env });
      },
      stop: async ({ signal }: { readonly signal: AbortSignal }) => {
        await ads.server.stop(signal);
        ads.close();
      },
    },
    ...(await createAdmission(context, settings, {
      ...{ ...environment, pipeline, policyPipeline: policies, ports },
    })),
    // Stopped before the ADS server, so that limiters which reconnect elsewhere are not reported as
    // gone.
    ...environment.statusComponents,
    createTermination(health, settings.shutdownDelayMs),
    { name: 'announcement', start: () => logger.info({ ...ports, source }, 'listening') },
  ];
  for (const component of components) lifecycle.add(component);
  return { lifecycle, health, ports };
}

/** Undefined without the setting. */
function toAllowedHosts(settings: Settings): AllowedHosts | undefined {
  const parsed = parseHostsByNamespace(settings.allowedHosts);
  if (!parsed.ok || parsed.value.size === 0) return undefined;
  return (namespace) => parsed.value.get(namespace) ?? [];
}

function toDeletionOptions(settings: Settings, store: HoldStore): DeletionOptions | undefined {
  if (!settings.deletionGuard) return undefined;
  const { deletionDelayMs, deletionGuardWindowMs, deletionGuardDomains, deletionGuardShare } = settings;
  return {
    ...{ store, delayMs: deletionDelayMs, windowMs: deletionGuardWindowMs },
    ...{ domains: deletionGuardDomains, share: deletionGuardShare / 100 },
  };
}

/** Unhealthy until there is a certificate: before, the ADS server does not listen. */
function certificatesComponent(certificates: SecretCertificates, health: Health) {
  const issued = health.component('certificates', { healthy: false });
  const stopListening = certificates.onChange(() => {
    issued.set(true);
    stopListening();
  });
  return {
    name: 'certificates',
    start: (context: { readonly signal: AbortSignal }) => certificates.start(context),
    stop: () => certificates.close(),
  };
}

interface Served {
  readonly snapshots: SnapshotStore;
  readonly limiters: LimiterRegistry;
  /** The part of the replica's report about rules that have matched. */
  readonly reportMatches: () => ReportedMatches | undefined;
}

interface AdsParts extends Pick<Served, 'snapshots' | 'limiters'> {
  readonly otherTypes: ReadonlyMap<string, ServedType>;
  readonly onMatches: (snapshot: Snapshot, matchedRules: unknown) => void;
  readonly health: Health;
  readonly certificates: SecretCertificates | undefined;
}

async function composeAds(
  context: Context,
  settings: Settings,
  { certificates, ...parts }: AdsParts,
): Promise<{ readonly server: AdsServer; close(): void }> {
  const { tokenFile, grpcClientSan } = settings;
  const onAttempt = countReloads(context.metrics, 'tokens');
  const watched =
    tokenFile === '' ? undefined : await watchBearerTokens(tokenFile, { logger: context.logger, onAttempt });
  const tls = await loadCredentials(context, settings, certificates);
  const server = new AdsServer(context, {
    ...toAdsListenOptions(settings),
    ...parts,
    credentials: tls.credentials,
    guard: grpcClientSan === '' ? everyPeer : createSanGuard(grpcClientSan),
    tokens: watched?.tokens,
  });
  return {
    server,
    close() {
      tls.close();
      watched?.close();
    },
  };
}

/** Credentials of the ADS server: from Secrets, from files, or plaintext. */
async function loadCredentials(
  { logger, metrics, nowMs }: Context,
  settings: Settings,
  certificates: SecretCertificates | undefined,
): Promise<WatchedCredentials> {
  const onCertificate = (validity: TlsValidity): void => metrics.tls.setValidity('ads_server', validity);
  if (certificates !== undefined) {
    certificates.onChange(({ notBeforeMs, notAfterMs }) => {
      if (notBeforeMs !== undefined && notAfterMs !== undefined) onCertificate({ notBeforeMs, notAfterMs });
    });
    return { credentials: followTls(certificates, { mutual: true }), close: () => undefined };
  }
  if (settings.grpcTlsCert !== '') {
    const onAttempt = countReloads(metrics, 'tls');
    return await watchServerCredentials(toTlsFiles(settings), { logger, onAttempt, onCertificate, nowMs });
  }
  const host = getGrpcHost(settings);
  if (settings.grpcPlaintext)
    logger.warn({ host }, 'serving ADS without TLS (XDS_GRPC_PLAINTEXT), use only in trusted networks');
  else logger.warn({ host }, 'serving ADS without TLS, only on loopback');
  return plaintextCredentials();
}

/** Where objects come from, and where their statuses are written. */
interface Environment {
  readonly source: ResourceSource;
  /** Undefined: access policies are not read, and auth servers get none. */
  readonly policies?: PolicySource;
  /** Where held deletions are stored. */
  readonly holdStore: HoldStore;
  /** Hosts that access policies may have. Default those of the settings. */
  readonly allowedHosts?: AllowedHosts;
  /** Get the results of access policies. */
  readonly policyReporters?: readonly PolicyReporter[];
  /** Where held deletions of access policies are stored. Default in memory. */
  readonly policyHoldStore?: HoldStore;
  /** Empty when objects have no status. */
  readonly writers: readonly StatusWriter[];
  /** @see PipelineOptions */
  readonly startGraceMs?: number;
  readonly stored?: (id: string) => StoredStatus | undefined;
  /** Undefined when replicas do not report to each other. */
  readonly reports?: ReplicaReports;
  /** Undefined without an election. */
  readonly leadership?: Leadership | undefined;
  /** Started before the source. */
  readonly components: readonly LifecycleComponent[];
  /** Started after the ADS server. */
  readonly statusComponents: readonly LifecycleComponent[];
  /** Undefined when certificates are files, or TLS is off. */
  readonly certificates?: SecretCertificates | undefined;
  /** Undefined without a cluster. */
  readonly api?: ApiClient;
}

/** Environments by the values of XDS_SOURCE. */
const environments = { folder: readFolder, kubernetes: readCluster } satisfies Record<SourceName, unknown>;

function readFolder(context: Context, settings: Settings): Environment {
  const { folder, namespaces, dataFolder, deletionGuard: comparesStored } = settings;
  const lastValid =
    dataFolder === '' ? undefined : new LastValidFiles({ logger: context.logger, directory: dataFolder });
  const source = new FolderSource(context, { folder, namespaces, lastValid, comparesStored });
  const holdStore = new AllowFile(context, folder, 'limits');
  const policyHoldStore = new AllowFile(context, folder, 'policies');
  const environment = {
    ...{ source, policies: source.policies, statusComponents: [] },
    ...{ holdStore, policyHoldStore },
  };
  if (lastValid === undefined) return { ...environment, writers: [], components: [] };
  const components = [{ name: 'last valid versions', stop: () => lastValid.close() }];
  return {
    ...environment,
    ...{ writers: [lastValid], policyReporters: [lastValid.policies], startGraceMs: 0, components },
  };
}

async function readCluster(context: Context, settings: Settings, served: Served): Promise<Environment> {
  const { logger, metrics } = context;
  const { folder, namespaces, resyncIntervalMs: resyncMs } = settings;
  if (folder !== '')
    logger.warn({ folder }, 'XDS_FOLDER ignored: set XDS_SOURCE=folder to read objects from the folder');
  const config = await loadKubeConfig(settings);
  const api = new ApiClient(config);
  logger.info(
    { server: maskUrl(api.server), context: config.getCurrentContext(), namespaces },
    'reading objects from a cluster',
  );
  const source = new KubernetesSource({
    ...{ api, logger, metrics, namespaces, resyncMs },
    resource: rateLimitConfigs,
  });
  const policies = settings.accessPolicies
    ? new KubernetesPolicies({ api, logger, namespaces, resyncMs })
    : undefined;
  const podNamespace = settings.podNamespace || currentNamespace(config);
  const certificates = settings.grpcOwnCa
    ? new SecretCertificates(context, {
        ...toCertificateOptions(settings, podNamespace),
        api,
        onAttempt: countReloads(metrics, 'tls'),
      })
    : undefined;
  const components = [{ name: 'API client', stop: () => api.close() }];
  const status = settings.statusEnabled
    ? composeStatus(context, settings, { api, config, source, policies, ...served })
    : { leadership: undefined, writers: [], statusComponents: [] };
  const namespace = settings.leaseNamespace || podNamespace;
  const name = `${settings.leaseName}-held`;
  // Without statuses, the privileges for objects that replicas share are missing, too.
  const makeHoldStore = (name: string) =>
    status.leadership === undefined
      ? memoryHold
      : new HeldConfigMap({ api, logger, namespace, name, leadership: status.leadership });
  return {
    ...{ api, source, certificates, components, ...status },
    holdStore: makeHoldStore(name),
    ...(policies && {
      ...{ policies, policyHoldStore: makeHoldStore(`${name}-policies`) },
      allowedHosts: (namespace) => [
        ...(toAllowedHosts(settings)?.(namespace) ?? []),
        ...policies.allowedHosts(namespace),
      ],
    }),
  };
}

interface ClusterParts extends Served {
  readonly api: ApiClient;
  readonly config: KubeConfig;
  readonly source: KubernetesSource;
  readonly policies: KubernetesPolicies | undefined;
}

function composeStatus(
  context: Context,
  settings: Settings,
  { api, config, source, policies, snapshots, limiters, reportMatches }: ClusterParts,
): Pick<
  Environment,
  'writers' | 'policyReporters' | 'reports' | 'stored' | 'statusComponents' | 'leadership'
> {
  const { logger, metrics } = context;
  const { leaseName: name, leaseDurationMs, statusDebounceMs: debounceMs } = settings;
  const namespace = settings.leaseNamespace || settings.podNamespace || currentNamespace(config);
  const identity = replicaIdentity(settings.podName);
  const leadership = new LeaseElector({
    api,
    logger,
    metrics,
    namespace,
    name,
    identity,
    podName: settings.podName,
    leaseDurationMs,
    renewDeadlineMs: settings.leaseRenewDeadlineMs,
    retryPeriodMs: settings.leaseRetryPeriodMs,
  });
  const writer = new KubernetesStatusWriter(context, {
    api,
    objects: source.objects,
    leadership,
    debounceMs,
  });
  const policyWriter =
    policies && new PolicyStatusWriter(context, { api, objects: policies.objects, leadership, debounceMs });
  const events = new KubernetesEvents(context, { api, leadership, instance: identity });
  const reports = new ReplicaReports({
    api,
    logger,
    leadership,
    namespace,
    name: `${name}-limiters`,
    identity,
    summarize: () => ({
      ...summarizeLimiters(limiters.settled(), (name) => snapshots.currentOf(name)),
      matched: reportMatches(),
    }),
  });
  const toComponent = (name: string, part: { start(): void; close(): Promise<void> }) => ({
    name,
    start: () => part.start(),
    stop: () => part.close(),
  });
  return {
    leadership,
    writers: [writer, events],
    ...(policyWriter && { policyReporters: [policyWriter] }),
    reports,
    stored: (id) => readStoredStatus(source.objects.get(id)?.manifest),
    statusComponents: [
      toComponent('limiter reports', reports),
      toComponent('leader election', leadership),
      toComponent('status writer', writer),
      toComponent('event writer', events),
      ...(policyWriter ? [toComponent('status writer of policies', policyWriter)] : []),
    ],
  };
}
