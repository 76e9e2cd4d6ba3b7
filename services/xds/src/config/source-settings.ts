import { bool, duration, int, list, longestTimer, oneOf, text } from '@tollgate/kit/settings';

const group = 'Source';

export const sourceSettings = {
  source: oneOf(['auto', 'kubernetes', 'folder'], {
    env: 'XDS_SOURCE',
    group,
    default: 'auto',
    doc: '`kubernetes` watches a cluster, `folder` reads manifests from files. `auto` is `kubernetes` in a pod and `folder` elsewhere.',
  }),
  folder: text({
    env: 'XDS_FOLDER',
    group,
    default: '',
    doc: 'Directory of manifests (`.yaml`, `.yml`, `.json`), including subdirectories. Required with XDS_SOURCE=folder. Reloaded when a file changes.',
  }),
  dataFolder: text({
    env: 'XDS_DATA_FOLDER',
    group,
    default: '',
    doc: 'Directory where the last valid version of each object is stored, with XDS_SOURCE=folder, so that an invalid manifest does not lift its limits or access policies after a restart. Created if it does not exist. A cluster stores them in the objects. Default: none are stored.',
  }),
  namespaces: list({
    env: 'XDS_NAMESPACES',
    group,
    default: [],
    doc: 'Namespaces whose objects are served. Default: all. With XDS_SOURCE=folder, the namespaces in the manifests.',
  }),
  accessPolicies: bool({
    env: 'XDS_ACCESS_POLICIES',
    group,
    default: true,
    doc: 'Serve the AccessPolicies of a cluster to auth servers, and their limits to limiters. Their CRD and those of Gateway API may be installed later.',
  }),
  authServices: list({
    env: 'XDS_AUTH_SERVICES',
    group,
    default: [],
    doc: 'Services of auth servers, as `namespace/name`, such as `tollgate/tollgate-auth-headless`. An AccessPolicy at a Gateway of Envoy Gateway is enforced when `extAuth` of the SecurityPolicy in effect has one of them as its backend. Default: every `extAuth` counts.',
  }),
  allowEmpty: bool({
    env: 'XDS_ALLOW_EMPTY',
    group,
    default: true,
    doc: 'Serve an empty set, which lifts every limit. With `false`, limiters keep their limits and auth servers their access policies until there is a new one, and an xDS server that starts without limits is not ready.',
  }),
  allowNoPolicies: bool({
    env: 'XDS_ALLOW_NO_POLICIES',
    group,
    default: false,
    doc: 'Send auth servers an empty set when the folder has no access policy at the start: checks then have the rules of the routes file. Otherwise auth servers keep the policies that they have, or deny, because the folder may not be mounted.',
  }),
  deletionGuard: bool({
    env: 'XDS_DELETION_GUARD',
    group,
    default: true,
    doc: 'Hold deletions back when many domains vanish at once, the CRD is deleted, or the source lists nothing any more: limiters keep the limits until the objects exist again, or until an operator lets the deletions through with the command in the log. `false` lets everything through.',
  }),
  deletionGuardShare: int({
    env: 'XDS_DELETION_GUARD_PERCENT',
    group,
    default: 50,
    min: 0,
    max: 100,
    doc: 'Deletions are held back when more than this percentage of all domains, and more than XDS_DELETION_GUARD_DOMAINS, vanish within XDS_DELETION_GUARD_WINDOW.',
  }),
  deletionGuardDomains: int({
    env: 'XDS_DELETION_GUARD_DOMAINS',
    group,
    default: 10,
    min: 0,
    max: 1_000_000,
    doc: 'So many domains may vanish within XDS_DELETION_GUARD_WINDOW in any case. When more do, their deletion takes effect at the end of that time, if it is not held back.',
  }),
  deletionGuardWindowMs: duration({
    env: 'XDS_DELETION_GUARD_WINDOW',
    group,
    default: '30s',
    max: '1h',
    doc: 'Deletions within this time are counted together, and undone together when they are held back.',
  }),
  deletionDelayMs: duration({
    env: 'XDS_DELETION_DELAY',
    group,
    default: '2s',
    max: '1h',
    doc: 'A deletion takes effect after this time, during which others are counted. An object that is created again meanwhile keeps its limits without a gap.',
  }),
  allowedHosts: list({
    env: 'XDS_ALLOWED_HOSTS',
    group,
    default: [],
    doc: 'Hosts that AccessPolicies of a namespace may have: `shop=api.example.com,*.shop.example.com,web=www.example.com`, where a host without a namespace belongs to the one before. A policy has no effect on other hosts (`HostNotAllowed`), and namespaces that are not listed may have none. Default: with XDS_SOURCE=folder, every host, because its files have one owner; in a cluster, the annotation `policy.tollgate.dev/allowed-hosts` of a Namespace adds hosts.',
  }),
  debounceMs: duration({
    env: 'XDS_DEBOUNCE',
    group,
    default: '5ms',
    max: '10s',
    doc: 'Changes are collected for this time before they are sent to limiters together.',
  }),
};

const kubernetesGroup = 'Kubernetes';

export const kubernetesSettings = {
  kubernetesServiceHost: text({
    env: 'KUBERNETES_SERVICE_HOST',
    group: kubernetesGroup,
    default: '',
    doc: 'Set by Kubernetes in every pod: the API server is called with the ServiceAccount of the pod.',
  }),
  kubeconfig: text({
    env: 'KUBECONFIG',
    group: kubernetesGroup,
    default: '',
    doc: 'Kubeconfig files, separated by colons. Takes precedence over the ServiceAccount. Default outside a pod: `~/.kube/config`.',
  }),
  resyncIntervalMs: duration({
    env: 'XDS_RESYNC_INTERVAL',
    group: kubernetesGroup,
    default: '10m',
    max: longestTimer,
    doc: 'Interval of complete lists, in addition to the watch. 0 disables them.',
  }),
  anyDomainNamespaces: list({
    env: 'XDS_ANY_DOMAIN_NAMESPACES',
    group: kubernetesGroup,
    default: [],
    doc: 'Namespaces whose objects may have any domain; `*` for all. Elsewhere a domain must be the name of the namespace, or begin with it and a slash: `shop`, `shop/web`. The folder source has no such rule.',
  }),
  domainGraceMs: duration({
    env: 'XDS_DOMAIN_GRACE_PERIOD',
    group: kubernetesGroup,
    default: '10m',
    max: longestTimer,
    doc: 'How long a domain stays reserved for its namespace after its last object was deleted, so that it does not change hands while objects are replaced. 0 disables reservations.',
  }),
};

const statusGroup = 'Status of objects';

export const statusSettings = {
  statusEnabled: bool({
    env: 'XDS_STATUS_ENABLED',
    group: statusGroup,
    default: true,
    doc: 'Write the status of objects. The replica that holds the Lease writes; all replicas serve.',
  }),
  unmatchedAfterMs: duration({
    env: 'XDS_UNMATCHED_AFTER',
    group: statusGroup,
    default: '1h',
    max: longestTimer,
    doc: 'A rule that has matched no request for this time is named in the condition Matched of its object. 0 observes nothing.',
  }),
  statusDebounceMs: duration({
    env: 'XDS_STATUS_DEBOUNCE',
    group: statusGroup,
    default: '1s',
    max: longestTimer,
    doc: 'Changes of statuses are collected for this time before they are written.',
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
    doc: 'Namespace of the Lease. Default: POD_NAMESPACE, then the namespace of the ServiceAccount or of the current context.',
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
    doc: 'Name of this replica in the Lease, from the downward API. Default: the host name. Processes that run at the same time need different names: one that starts takes over the Lease of an earlier one of its name at once.',
  }),
  leaseDurationMs: duration({
    env: 'XDS_LEASE_DURATION',
    group: statusGroup,
    default: '6s',
    min: '1s',
    max: longestTimer,
    doc: 'Other replicas take over when the holder has not renewed the Lease for this time.',
  }),
  leaseRenewDeadlineMs: duration({
    env: 'XDS_LEASE_RENEW_DEADLINE',
    group: statusGroup,
    default: '4s',
    min: '500ms',
    max: longestTimer,
    doc: 'The holder steps down when it could not renew the Lease for this time. Must be less than XDS_LEASE_DURATION.',
  }),
  leaseRetryPeriodMs: duration({
    env: 'XDS_LEASE_RETRY_PERIOD',
    group: statusGroup,
    default: '1s',
    min: '100ms',
    max: longestTimer,
    doc: 'Time between attempts to acquire or renew the Lease. Must be less than XDS_LEASE_RENEW_DEADLINE.',
  }),
};
