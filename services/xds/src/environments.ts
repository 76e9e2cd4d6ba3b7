import type { KubeConfig } from '@kubernetes/client-node';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { maskUrl } from '@tollgate/kit/text';
import { SecretCertificates } from './certificates/certificates.ts';
import { type Settings, toCertificateOptions } from './config/settings.ts';
import type { Context } from './context.ts';
import { ApiClient } from './kube/client.ts';
import { currentNamespace, loadKubeConfig } from './kube/config.ts';
import { createIdentity, LeaseElector } from './kube/lease.ts';
import { countReloads } from './metrics.ts';
import { FolderSource } from './sources/folder.ts';
import { KubernetesSource } from './sources/kubernetes.ts';
import type { ResourceSource } from './sources/source.ts';
import { KubernetesEvents } from './status/events.ts';
import { ReplicaReports } from './status/replica-reports.ts';
import type { StatusWriter } from './status/reporter.ts';
import { KubernetesStatusWriter } from './status/writer.ts';

/** Where objects come from, and where their statuses are written. */
interface Environment {
  readonly source: ResourceSource;
  /** Empty when objects have no status. */
  readonly writers: readonly StatusWriter[];
  /** Undefined when replicas do not report to each other. */
  readonly reports?: ReplicaReports;
  /** Started before the source. */
  readonly components: readonly LifecycleComponent[];
  /** Started after the ADS server. */
  readonly statusComponents: readonly LifecycleComponent[];
  /** Undefined when certificates are files, or TLS is off. */
  readonly certificates?: SecretCertificates | undefined;
}

/** By the values of XDS_SOURCE. */
export const environments = { folder: createFolderEnvironment, kubernetes: createKubernetesEnvironment };

function createFolderEnvironment(context: Context, { folder, namespaces }: Settings): Environment {
  const source = new FolderSource(context, { folder, namespaces });
  return { source, writers: [], components: [], statusComponents: [] };
}

async function createKubernetesEnvironment(context: Context, settings: Settings): Promise<Environment> {
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
  const source = new KubernetesSource({ api, logger, metrics, namespaces, resyncMs });
  const podNamespace = settings.podNamespace || currentNamespace(config);
  const certificates = settings.grpcOwnCa
    ? new SecretCertificates(context, {
        ...toCertificateOptions(settings, podNamespace),
        api,
        onAttempt: countReloads(metrics, 'tls'),
      })
    : undefined;
  const components = [{ name: 'API client', stop: () => api.close() }];
  return settings.statusEnabled
    ? { source, certificates, components, ...createStatusParts(context, settings, { api, config, source }) }
    : { source, certificates, components, writers: [], statusComponents: [] };
}

function createStatusParts(
  context: Context,
  settings: Settings,
  { api, config, source }: { api: ApiClient; config: KubeConfig; source: KubernetesSource },
): Pick<Environment, 'writers' | 'reports' | 'statusComponents'> {
  const { logger, metrics } = context;
  const { leaseName: name, leaseDurationMs, statusDebounceMs: debounceMs } = settings;
  const namespace = settings.leaseNamespace || settings.podNamespace || currentNamespace(config);
  const identity = createIdentity(settings.podName);
  const elector = new LeaseElector({
    api,
    logger,
    metrics,
    namespace,
    name,
    identity,
    leaseDurationMs,
    renewDeadlineMs: settings.leaseRenewDeadlineMs,
    retryPeriodMs: settings.leaseRetryPeriodMs,
  });
  const leadership = elector;
  const writer = new KubernetesStatusWriter(context, { api, objects: source, leadership, debounceMs });
  const events = new KubernetesEvents(context, { api, leadership, instance: identity });
  const reports = new ReplicaReports({
    api,
    logger,
    leadership,
    namespace,
    name: `${name}-limiters`,
    identity,
  });
  const toComponent = (name: string, part: { start(): void; close(): Promise<void> }) => ({
    name,
    start: () => part.start(),
    stop: () => part.close(),
  });
  return {
    writers: [writer, events],
    reports,
    statusComponents: [
      toComponent('limiter reports', reports),
      toComponent('leader election', elector),
      toComponent('status writer', writer),
      toComponent('event writer', events),
    ],
  };
}
