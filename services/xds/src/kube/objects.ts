/** A kind of objects in the API. */
export interface KubeResource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** As in paths and RBAC rules: `ratelimitconfigs`. */
  readonly plural: string;
  readonly kind: string;
}

export const rateLimitConfigs: KubeResource = {
  group: 'ratelimit.tollgate.dev',
  version: 'v1alpha1',
  plural: 'ratelimitconfigs',
  kind: 'RateLimitConfig',
};

/** Elects the replica that writes statuses. */
export const leases: KubeResource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
};

/** Holds the limiter reports of the replicas. */
export const configMaps: KubeResource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' };

/** Hold certificates. */
export const secrets: KubeResource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' };

export const events: KubeResource = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
};

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/** `group/version`, as in manifests. */
export function getApiVersion({ group, version }: KubeResource): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Path of all objects of a kind, in one namespace or, when that is empty, in all. */
export function collectionPath(resource: KubeResource, namespace: string): string {
  const scope = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const root = resource.group === '' ? 'api' : 'apis';
  return `/${root}/${getApiVersion(resource)}${scope}/${resource.plural}`;
}

export function objectPath(resource: KubeResource, { namespace, name }: ObjectName): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}

/** An object of any kind. */
export interface KubeObject {
  /** `namespace/name`. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Opaque; differs after each change. */
  readonly resourceVersion: string;
  /** 0 for kinds without generations. */
  readonly generation: number;
  /** Unix time in milliseconds; 0 if unknown. */
  readonly createdMs: number;
  /** The decoded JSON. */
  readonly manifest: Readonly<Record<string, unknown>>;
}

/**
 * Parses an object. `managedFields` and kubectl's last-applied annotation, which repeat the spec,
 * are dropped from the manifest: they take more memory than everything else.
 *
 * @throws Error without a name, uid or resourceVersion.
 */
export function parseKubeObject(value: unknown): KubeObject {
  const manifest = requireRecord(value, 'object');
  const metadata = requireRecord(manifest.metadata, 'metadata');
  const requireText = (key: string): string => {
    const field = metadata[key];
    if (typeof field !== 'string' || field === '') throw new Error(`an object has no metadata.${key}`);
    return field;
  };
  const name = requireText('name');
  const namespace = typeof metadata.namespace === 'string' ? metadata.namespace : '';
  const { generation, creationTimestamp } = metadata;
  return {
    id: `${namespace}/${name}`,
    namespace,
    name,
    uid: requireText('uid'),
    resourceVersion: requireText('resourceVersion'),
    generation: typeof generation === 'number' ? generation : 0,
    createdMs: typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) || 0 : 0,
    manifest: { ...manifest, metadata: withoutBookkeeping(metadata) },
  };
}

/** @throws Error that names `what` unless the value is a JSON object. */
export function requireRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`the API server sent an invalid ${what}`);
  // Parsed JSON: an object that is not an array has string keys and unknown values.
  return value as Readonly<Record<string, unknown>>;
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

function withoutBookkeeping(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { managedFields: _, annotations, ...rest } = metadata;
  if (typeof annotations !== 'object' || annotations === null) return rest;
  const kept = Object.entries(annotations).filter(([key]) => key !== lastApplied);
  return kept.length === 0 ? rest : { ...rest, annotations: Object.fromEntries(kept) };
}
