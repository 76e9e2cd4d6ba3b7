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

/** An error response of the API server, or an ERROR event of a watch. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status, also of an ERROR event. */
  readonly status: number;
  /** The reason of the `metav1.Status`, such as `Expired` or `Conflict`; may be empty. */
  readonly reason: string;
  /** From `Retry-After`; 0 without. */
  readonly retryAfterMs: number;

  constructor(
    status: number,
    details: { readonly reason?: string; readonly message?: string; readonly retryAfterMs?: number } = {},
  ) {
    const { reason = '', message = '', retryAfterMs = 0 } = details;
    super(message || `the API server responded with ${status}`);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Parses a `metav1.Status`; the message of any other body is its beginning. */
export function parseApiError(status: number, body: string, retryAfterMs = 0): ApiError {
  const { reason, message } = parseStatus(body);
  return new ApiError(status, { reason, message: message || excerpt(status, body), retryAfterMs });
}

export function hasStatus(error: unknown, ...statuses: readonly number[]): error is ApiError {
  return error instanceof ApiError && statuses.includes(error.status);
}

/** Characters of a body that is not a status. */
const maxExcerptChars = 200;

function excerpt(status: number, body: string): string {
  const text = body.trim().slice(0, maxExcerptChars);
  return text === '' ? '' : `the API server responded with ${status}: ${text}`;
}

function parseStatus(body: string): { reason: string; message: string } {
  try {
    const value: unknown = JSON.parse(body);
    return { reason: getText(value, 'reason'), message: getText(value, 'message') };
  } catch {
    return { reason: '', message: '' };
  }
}

function getText(value: unknown, key: string): string {
  if (typeof value !== 'object' || value === null) return '';
  const field: unknown = Reflect.get(value, key);
  return typeof field === 'string' ? field : '';
}

/** What was attempted when an error occurred. */
export interface Attempt {
  /** RBAC verb: `list`, `watch`, `patch`, `create`, `get`, `update`. */
  readonly verb: string;
  readonly resource: KubeResource;
  readonly subresource?: string;
  /** Empty for all namespaces. */
  readonly namespace: string;
}

/** The reason of a failure for the log, with advice if there is any. */
export function describeApiError(error: unknown, attempt: Attempt): string {
  return explainApiError(error, attempt) ?? (error instanceof Error ? error.message : String(error));
}

/** What is wrong and what to do about it; undefined for temporary errors. */
export function explainApiError(error: unknown, attempt: Attempt): string | undefined {
  if (!(error instanceof ApiError)) return explainTlsError(error);
  const { resource, namespace, verb } = attempt;
  switch (error.status) {
    case 401:
      return 'the API server does not accept the credentials: check the service account token, or the user of the kubeconfig';
    case 403: {
      const scope = namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`;
      return `not allowed to ${verb} ${getFullName(attempt)} ${scope}: ${explainGrant(attempt)}`;
    }
    case 404:
      // For other kinds, 404 concerns one object and is handled by the caller.
      return resource === rateLimitConfigs
        ? `the cluster has no ${getFullName(attempt)}: kubectl apply -f crds/ratelimitconfigs.yaml`
        : undefined;
    default:
      return undefined;
  }
}

/** Codes of Node for a certificate of an unknown authority. */
const unknownAuthority: ReadonlySet<unknown> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function explainTlsError(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && unknownAuthority.has(error.code))) return undefined;
  return (
    `the certificate of the API server is not trusted (${error.message}): ` +
    'set certificate-authority or certificate-authority-data of the cluster in the kubeconfig'
  );
}

/** The manifest that grants the privilege, and the setting that avoids it. */
function explainGrant({ resource, subresource = '', namespace }: Attempt): string {
  const clusterWide = 'grant it, see services/xds/deploy/rbac.yaml';
  const namespaced = 'services/xds/deploy/rbac-namespaced.yaml';
  if (resource === secrets)
    return `${clusterWide}, for the Secrets of XDS_GRPC_CERTIFICATE_SECRET and XDS_GRPC_CLIENT_SECRETS`;
  if (resource === events) return clusterWide;
  if (resource !== rateLimitConfigs)
    return `${clusterWide}, or set XDS_LEASE_NAMESPACE to a namespace where it is granted`;
  // The namespace is that of an object, whether or not XDS_NAMESPACES is set.
  if (subresource !== '') return `${clusterWide}, or ${namespaced} when XDS_NAMESPACES is set`;
  return namespace === ''
    ? `${clusterWide}, or set XDS_NAMESPACES to the namespaces where it is granted`
    : `grant it, see ${namespaced}`;
}

function getFullName({ resource, subresource = '' }: Attempt): string {
  const plural = subresource === '' ? resource.plural : `${resource.plural}/${subresource}`;
  return resource.group === '' ? plural : `${plural}.${resource.group}`;
}
