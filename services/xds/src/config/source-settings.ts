import { bool, duration, list, longestTimer, oneOf, text } from '@tollgate/kit/settings';

const group = 'Source';

/** Where RateLimitConfig objects come from. */
export const sourceSettings = {
  source: oneOf(['auto', 'kubernetes', 'folder'], {
    env: 'XDS_SOURCE',
    group,
    default: 'auto',
    doc: '`kubernetes` watches a cluster, `folder` reads manifests from files; `auto` is `kubernetes` inside a pod and `folder` elsewhere.',
  }),
  folder: text({
    env: 'XDS_FOLDER',
    group,
    default: '',
    doc: 'Directory of manifests (`.yaml`, `.yml`, `.json`, subdirectories too), read again when one changes. Needed with `folder`.',
  }),
  namespaces: list({
    env: 'XDS_NAMESPACES',
    group,
    default: [],
    doc: 'Namespaces whose objects count; all when empty. With `folder`: of the manifests.',
  }),
  allowEmpty: bool({
    env: 'XDS_ALLOW_EMPTY',
    group,
    default: true,
    doc: 'Serve an empty set: every limit is lifted. With false, limiters keep the last one until there is a limit again, and a management server that finds none at its start is not ready.',
  }),
  debounceMs: duration({
    env: 'XDS_DEBOUNCE',
    group,
    default: '5ms',
    max: '10s',
    doc: 'How long changes are collected before limiters are told of them together.',
  }),
};

const kubernetesGroup = 'Kubernetes';

/** How the cluster is reached. */
export const kubernetesSettings = {
  kubernetesServiceHost: text({
    env: 'KUBERNETES_SERVICE_HOST',
    group: kubernetesGroup,
    default: '',
    doc: 'Set in every pod: the API server is reached with the ServiceAccount of the pod.',
  }),
  kubeconfig: text({
    env: 'KUBECONFIG',
    group: kubernetesGroup,
    default: '',
    doc: 'Files, separated by colons, that say how the cluster is reached; comes before the ServiceAccount. Outside a pod `~/.kube/config` when empty.',
  }),
  resyncIntervalMs: duration({
    env: 'XDS_RESYNC_INTERVAL',
    group: kubernetesGroup,
    default: '10m',
    max: longestTimer,
    doc: 'How often everything is listed anew, whatever the watch has told; 0 never.',
  }),
  domainGraceMs: duration({
    env: 'XDS_DOMAIN_GRACE_PERIOD',
    group: kubernetesGroup,
    default: '10m',
    max: longestTimer,
    doc: 'How long a domain is kept for its namespace after the last object for it is gone, so that it does not change hands while objects are replaced; 0 not at all.',
  }),
};

const statusGroup = 'Status of objects';

/** How the status of objects is written, with Kubernetes. */
export const statusSettings = {
  statusEnabled: bool({
    env: 'XDS_STATUS_ENABLED',
    group: statusGroup,
    default: true,
    doc: 'Report back in the status of each object. One replica does, the one that holds the Lease; all of them serve.',
  }),
  statusDebounceMs: duration({
    env: 'XDS_STATUS_DEBOUNCE',
    group: statusGroup,
    default: '1s',
    max: longestTimer,
    doc: 'How long changes of a status are collected before they are written.',
  }),
  leaseName: text({
    env: 'XDS_LEASE_NAME',
    group: statusGroup,
    default: 'tollgate-xds',
    doc: 'Name of the Lease (coordination.k8s.io).',
  }),
  leaseNamespace: text({
    env: 'XDS_LEASE_NAMESPACE',
    group: statusGroup,
    default: '',
    doc: 'Its namespace; when empty POD_NAMESPACE, then that of the ServiceAccount or of the current context.',
  }),
  podNamespace: text({
    env: 'POD_NAMESPACE',
    group: statusGroup,
    default: '',
    doc: 'Namespace of the pod, from the downward API.',
  }),
  podName: text({
    env: 'POD_NAME',
    group: statusGroup,
    default: '',
    doc: 'What this replica is called in the Lease, from the downward API; the host name when empty.',
  }),
  leaseDurationMs: duration({
    env: 'XDS_LEASE_DURATION',
    group: statusGroup,
    default: '15s',
    min: '1s',
    max: longestTimer,
    doc: 'How long others wait before they take over from a holder that is silent.',
  }),
  leaseRenewDeadlineMs: duration({
    env: 'XDS_LEASE_RENEW_DEADLINE',
    group: statusGroup,
    default: '10s',
    min: '500ms',
    max: longestTimer,
    doc: 'How long the holder tries to renew before it steps down; less than the duration.',
  }),
  leaseRetryPeriodMs: duration({
    env: 'XDS_LEASE_RETRY_PERIOD',
    group: statusGroup,
    default: '2s',
    min: '100ms',
    max: longestTimer,
    doc: 'Time between attempts; less than the deadline.',
  }),
};
