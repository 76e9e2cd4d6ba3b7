import type { KubeConfig } from '@kubernetes/client-node';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { maskUrl } from '@tollgate/kit/text';
import type { ClientRegistry } from './ads/clients.ts';
import type { SnapshotStore } from './catalog/snapshot.ts';
import type { HoldStore, ResourceSource } from './catalog/source.ts';
import { SecretCertificates } from './certificates/certificates.ts';
import { type Settings, type SourceName, toCertificateOptions } from './config/settings.ts';
import type { Context } from './context.ts';
import { memoryHold } from './deletions.ts';
import { ApiClient } from './kube/client.ts';
import { currentNamespace, loadKubeConfig } from './kube/config.ts';
import { type Leadership, LeaseElector, replicaIdentity } from './kube/lease.ts';
import { rateLimitConfigs } from './kube/resources.ts';
import { countReloads } from './metrics.ts';
import { type AllowedHosts, parseHostsByNamespace } from './policies/allowed-hosts.ts';
import type { PolicyReporter } from './policies/policy-result.ts';
import type { PolicySource } from './policies/policy-source.ts';
import type { RolloutClients } from './policies/rollout.ts';
import { AllowFile } from './sources/allow-file.ts';
import { FolderSource } from './sources/folder.ts';
import { HeldConfigMap } from './sources/held-config-map.ts';
import { KubernetesSource } from './sources/kubernetes.ts';
import { KubernetesPolicies } from './sources/kubernetes-policies.ts';
import { LastValidFiles } from './sources/last-valid-files.ts';
import { summarizeClients } from './status/client-report.ts';
import { KubernetesEvents, rateLimitConfigEvents } from './status/events.ts';
import type { ReportedMatches } from './status/matched-rules.ts';
import { policyEvents } from './status/policy-events.ts';
import { PolicyStatusReporter, type PolicyStatusReporterOptions } from './status/policy-reporter.ts';
import { policyStatuses } from './status/policy-status.ts';
import { ReplicaReports } from './status/replica-reports.ts';
import type { StatusWriter } from './status/reporter.ts';
import { rateLimitConfigStatuses, readStoredStatus, type StoredStatus } from './status/status-manifest.ts';
import { KubernetesStatusWriter } from './status/writer.ts';

/** The parts of the server that objects of a cluster report. */
export interface Served {
  readonly snapshots: SnapshotStore;
  readonly limiters: ClientRegistry;
  /** The clients that get access policies. */
  readonly authServers: RolloutClients;
  /** The part of the replica's report about rules that have matched. */
  readonly reportMatches: () => ReportedMatches | undefined;
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
  /** Gets the policies that an auth server says checks had. */
  readonly onSeenPolicies?: (names: unknown) => void;
  /** Knows whether clients have an access policy. */
  readonly policyStatuses?: PolicyStatusReporter;
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
export const environments = { folder: readFolder, kubernetes: readCluster } satisfies Record<
  SourceName,
  unknown
>;

function readFolder(context: Context, settings: Settings, served: Served): Environment {
  const { folder, namespaces, dataFolder, deletionGuard: comparesStored } = settings;
  const lastValid =
    dataFolder === '' ? undefined : new LastValidFiles({ logger: context.logger, directory: dataFolder });
  const source = new FolderSource(context, { folder, namespaces, lastValid, comparesStored });
  const holdStore = new AllowFile(folder, 'limits');
  const policyHoldStore = new AllowFile(folder, 'policies');
  const reporting = reportPolicies(makePolicyReporter(context, served));
  const environment = { source, policies: source.policies, holdStore, policyHoldStore, ...reporting };
  if (lastValid === undefined) return { ...environment, writers: [], components: [] };
  const components = [{ name: 'last valid versions', stop: () => lastValid.close() }];
  return {
    ...environment,
    ...{ writers: [lastValid], startGraceMs: 0, components },
    policyReporters: [lastValid.policies, ...reporting.policyReporters],
  };
}

/** Without options, no status is written, and the reporter only counts. */
function makePolicyReporter(
  { metrics }: Context,
  { snapshots, limiters, authServers }: Served,
  options: Pick<PolicyStatusReporterOptions, 'reports' | 'stored' | 'observers'> = {},
): PolicyStatusReporter {
  const clients = { authServers, limiters: { snapshots, clients: limiters } };
  return new PolicyStatusReporter({ metrics, ...clients, ...options });
}

const reportPolicies = (reporter: PolicyStatusReporter) => ({
  policyReporters: [reporter],
  onSeenPolicies: (names: unknown) => reporter.addSeen(names),
  policyStatuses: reporter,
  statusComponents: [{ name: 'status of policies', stop: async () => reporter.close() }],
});

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
    ? new KubernetesPolicies({ api, logger, namespaces, resyncMs, authServices: settings.authServices })
    : undefined;
  const configuredHosts = toAllowedHosts(settings);
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
    : {
        ...{ leadership: undefined, writers: [], statusComponents: [] },
        ...(policies && reportPolicies(makePolicyReporter(context, served))),
      };
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
        ...(configuredHosts?.(namespace) ?? []),
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
  { api, config, source, policies, ...served }: ClusterParts,
): Pick<
  Environment,
  | 'writers'
  | 'policyReporters'
  | 'onSeenPolicies'
  | 'policyStatuses'
  | 'reports'
  | 'stored'
  | 'statusComponents'
  | 'leadership'
> {
  const { logger, metrics } = context;
  const { snapshots, limiters, authServers, reportMatches } = served;
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
  const writing = { api, leadership, debounceMs };
  const writer = new KubernetesStatusWriter(context, {
    ...{ ...writing, kind: rateLimitConfigStatuses, objects: source.objects },
  });
  const policyWriter =
    policies &&
    new KubernetesStatusWriter(context, { ...writing, kind: policyStatuses, objects: policies.objects });
  const eventOptions = { api, leadership, instance: identity };
  const events = new KubernetesEvents(context, { ...eventOptions, kind: rateLimitConfigEvents });
  const policyEventWriter =
    policies &&
    new KubernetesEvents(context, {
      ...eventOptions,
      kind: policyEvents((id) => policies.objects.get(id)?.uid),
    });
  const observed: { reporter: PolicyStatusReporter | undefined } = { reporter: undefined };
  const reports = new ReplicaReports({
    api,
    logger,
    leadership,
    namespace,
    name: `${name}-limiters`,
    identity,
    summarize: () => ({
      ...summarizeClients(limiters.settled(), (name) => snapshots.currentOf(name)),
      matched: reportMatches(),
      ...(observed.reporter && {
        authServers: summarizeClients(authServers.clients.settled(), (name) =>
          authServers.snapshots.currentOf(name),
        ),
        seenPolicies: observed.reporter.reportSeen(),
      }),
    }),
  });
  observed.reporter =
    policies &&
    policyWriter &&
    policyEventWriter &&
    makePolicyReporter(context, served, {
      ...{ reports, observers: [policyWriter, policyEventWriter] },
      stored: (id) => policies.objects.get(id)?.manifest.status,
    });
  const reporting = observed.reporter && reportPolicies(observed.reporter);
  const toComponent = (name: string, part: { start(): void; close(): Promise<void> }) => ({
    name,
    start: () => part.start(),
    stop: () => part.close(),
  });
  return {
    leadership,
    writers: [writer, events],
    ...reporting,
    reports,
    stored: (id) => readStoredStatus(source.objects.get(id)?.manifest),
    statusComponents: [
      toComponent('limiter reports', reports),
      toComponent('leader election', leadership),
      toComponent('status writer', writer),
      toComponent('event writer', events),
      ...(policyWriter ? [toComponent('status writer of policies', policyWriter)] : []),
      ...(policyEventWriter ? [toComponent('event writer of policies', policyEventWriter)] : []),
      ...(reporting?.statusComponents ?? []),
    ],
  };
}

/** Parses the setting, of which each policy needs the hosts. Undefined without it. */
export function toAllowedHosts(settings: Settings): AllowedHosts | undefined {
  const parsed = parseHostsByNamespace(settings.allowedHosts);
  if (!parsed.ok || parsed.value.size === 0) return undefined;
  return (namespace) => parsed.value.get(namespace) ?? [];
}
