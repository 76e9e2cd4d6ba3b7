import { getErrorMessage } from '@tollgate/kit/errors';
import { type KubeResource, type Purpose, rateLimitConfigs } from './resources.ts';

/** An error response of the API server, or an ERROR event of a watch. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status, also of an ERROR event. */
  readonly status: number;
  /** The reason of the `metav1.Status`, such as `Expired` or `Conflict`; may be empty. */
  readonly reason: string;
  /** Value of `Retry-After`; 0 without. */
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

/** The error response with a `metav1.Status`; the message of any other body is its beginning. */
export function parseApiError(status: number, body: string, retryAfterMs = 0): ApiError {
  const { reason, message } = parseStatus(body);
  return new ApiError(status, { reason, message: message || excerpt(status, body), retryAfterMs });
}

/** The error of an ERROR event, whose object is a `metav1.Status`. */
export function toApiError(status: Readonly<Record<string, unknown>>): ApiError {
  const { code } = status;
  return new ApiError(typeof code === 'number' ? code : 500, readStatus(status));
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
    return readStatus(JSON.parse(body));
  } catch {
    return { reason: '', message: '' };
  }
}

function readStatus(value: unknown): { reason: string; message: string } {
  return { reason: getText(value, 'reason'), message: getText(value, 'message') };
}

function getText(value: unknown, key: string): string {
  if (typeof value !== 'object' || value === null) return '';
  const field: unknown = Reflect.get(value, key);
  return typeof field === 'string' ? field : '';
}

/** Attempt during which an error occurred. */
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
  return explainApiError(error, attempt) ?? getErrorMessage(error);
}

/** Problem and remedy; undefined for temporary errors. */
export function explainApiError(error: unknown, attempt: Attempt): string | undefined {
  if (!(error instanceof ApiError)) return explainTlsError(error);
  const { resource, namespace, verb } = attempt;
  switch (error.status) {
    case 401:
      return 'the API server does not accept the credentials: check the service account token, or the user of the kubeconfig';
    case 403: {
      const scope = namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`;
      return `not allowed to ${verb} ${getFullName(attempt)} ${scope}: ${grants[resource.purpose](attempt)}`;
    }
    case 404:
      if (resource === rateLimitConfigs)
        return `the cluster has no ${getFullName(attempt)}: kubectl apply -f crds/ratelimitconfigs.yaml`;
      // With other verbs, 404 concerns one object and is handled by the caller.
      return verb === 'list' || verb === 'watch'
        ? `the cluster no longer has ${getFullName(attempt)} in the version ${resource.apiVersion}`
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

const clusterWide = 'grant it, see services/xds/deploy/rbac.yaml';
const namespaced = 'services/xds/deploy/rbac-namespaced.yaml';

/** The manifest that grants the privilege for objects of namespaces. */
function getManifest({ subresource = '', namespace }: Attempt): string {
  // The namespace is that of an object, whether or not XDS_NAMESPACES is set.
  if (subresource !== '') return `${clusterWide}, or ${namespaced} when XDS_NAMESPACES is set`;
  return namespace === '' ? clusterWide : `grant it, see ${namespaced}`;
}

/** Where a privilege is granted, and what is missing without it or how to avoid it. */
const grants: Readonly<Record<Purpose, (attempt: Attempt) => string>> = {
  limits: (attempt) =>
    attempt.namespace === ''
      ? `${clusterWide}, or set XDS_NAMESPACES to the namespaces where it is granted`
      : getManifest(attempt),
  'access policies': (attempt) =>
    `${getManifest(attempt)}, or set XDS_ACCESS_POLICIES=false to serve no access policies`,
  enforcement: () =>
    `${clusterWide}; without it, nothing says whether Envoy Gateway enforces access policies, which are served nevertheless`,
  certificates: () =>
    `${clusterWide}, for the Secrets of XDS_GRPC_CERTIFICATE_SECRET and XDS_GRPC_CLIENT_SECRETS`,
  events: () => clusterWide,
  replicas: () => `${clusterWide}, or set XDS_LEASE_NAMESPACE to a namespace where it is granted`,
  admission: () => 'grant it, see services/xds/deploy/admission-webhook.yaml',
};

function getFullName({ resource, subresource = '' }: Attempt): string {
  const plural = subresource === '' ? resource.plural : `${resource.plural}/${subresource}`;
  return resource.group === '' ? plural : `${plural}.${resource.group}`;
}
