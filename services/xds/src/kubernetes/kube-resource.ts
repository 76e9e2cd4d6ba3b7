/** A kind of objects, as the paths of the API server name it. */
export interface KubeResource {
  /** Such as `ratelimit.tollgate.dev`; empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** As in paths and RBAC rules: `ratelimitconfigs`. */
  readonly plural: string;
  readonly kind: string;
}

/** The resource that this service serves. */
export const rateLimitConfigs: KubeResource = {
  group: 'ratelimit.tollgate.dev',
  version: 'v1alpha1',
  plural: 'ratelimitconfigs',
  kind: 'RateLimitConfig',
};

/** What elects the replica that writes. */
export const leases: KubeResource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
};

/** What replicas tell each other in. */
export const configMaps: KubeResource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' };

/** What certificates are kept in. */
export const secrets: KubeResource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' };

/** What `kubectl describe` shows of the history of an object. */
export const events: KubeResource = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
};

/** `group/version`, as manifests spell it. */
export function apiVersionOf({ group, version }: KubeResource): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Path of all objects of a kind, in one namespace or, when that is empty, in all. */
export function collectionPath(resource: KubeResource, namespace: string): string {
  const scope = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const root = resource.group === '' ? 'api' : 'apis';
  return `/${root}/${apiVersionOf(resource)}${scope}/${resource.plural}`;
}

/** Path of one object. */
export function objectPath(resource: KubeResource, { namespace, name }: ObjectName): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}

/** Where an object is. */
export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}
