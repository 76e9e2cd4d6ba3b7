import { events, type KubeResource, rateLimitConfigs, secrets } from './objects.ts';

/** The API server's refusal: a response other than 2xx, or an ERROR event of a watch. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status, also where it came as an event of a watch. */
  readonly status: number;
  /** Kubernetes' word for it, such as `Expired`, `Forbidden`, `Conflict`; empty where it gave none. */
  readonly reason: string;
  /** How long the server asks to be left alone; 0 where it did not ask. */
  readonly retryAfterMs: number;

  constructor(status: number, { reason = '', message = '', retryAfterMs = 0 }: ApiErrorDetails = {}) {
    super(message || `the API server answered ${status}`);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What is known of a refusal besides its status. */
export interface ApiErrorDetails {
  readonly reason?: string;
  readonly message?: string;
  readonly retryAfterMs?: number;
}

/** Reads a `metav1.Status`, the body of a refusal; of anything else, such as a proxy's page, the beginning is the message. */
export function apiErrorFrom(status: number, body: string, retryAfterMs = 0): ApiError {
  const { reason, message } = readStatus(body);
  return new ApiError(status, { reason, message: message || excerpt(status, body), retryAfterMs });
}

/** Whether the error is a refusal with this HTTP status. */
export function hasStatus(error: unknown, ...statuses: readonly number[]): error is ApiError {
  return error instanceof ApiError && statuses.includes(error.status);
}

/** Enough of a proxy's page to recognise it. */
const maxExcerptChars = 200;

function excerpt(status: number, body: string): string {
  const text = body.trim().slice(0, maxExcerptChars);
  return text === '' ? '' : `the API server answered ${status}: ${text}`;
}

function readStatus(body: string): { reason: string; message: string } {
  try {
    const value: unknown = JSON.parse(body);
    return { reason: textOf(value, 'reason'), message: textOf(value, 'message') };
  } catch {
    return { reason: '', message: '' };
  }
}

function textOf(value: unknown, key: string): string {
  if (typeof value !== 'object' || value === null) return '';
  const field: unknown = Reflect.get(value, key);
  return typeof field === 'string' ? field : '';
}

/** What was attempted when the API server refused. */
export interface Attempt {
  /** RBAC's word: `list`, `watch`, `patch`, `create`, `get`, `update`. */
  readonly verb: string;
  readonly resource: KubeResource;
  /** `status`, or empty. */
  readonly subresource?: string;
  /** Empty for all namespaces. */
  readonly namespace: string;
}

/**
 * Says in one sentence what is wrong and what to do about it, for the refusals that somebody has to act upon; undefined
 * for outages, which pass.
 */
export function explainApiError(error: unknown, attempt: Attempt): string | undefined {
  if (!(error instanceof ApiError)) return explainDistrust(error);
  const { resource, namespace, verb } = attempt;
  switch (error.status) {
    case 401:
      return 'the API server does not accept the credentials: check the service account token, or the user of the kubeconfig';
    case 403: {
      const where = namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`;
      return `not allowed to ${verb} ${fullName(attempt)} ${where}: ${howToGrant(attempt)}`;
    }
    case 404:
      // Another kind's 404 is about one object, and its caller knows what that means.
      return resource === rateLimitConfigs
        ? `the cluster does not know ${fullName(attempt)}: kubectl apply -f crds/ratelimitconfigs.yaml`
        : undefined;
    default:
      return undefined;
  }
}

/** What Node says of a certificate whose authority it does not know. */
const unknownAuthority: ReadonlySet<unknown> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function explainDistrust(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && unknownAuthority.has(error.code))) return undefined;
  return (
    `the certificate of the API server is of an authority that is not trusted (${error.message}): ` +
    'name that authority as certificate-authority or certificate-authority-data of the cluster in the kubeconfig'
  );
}

/** Which manifest has the right, and the setting that makes another one do. */
function howToGrant({ resource, subresource = '', namespace }: Attempt): string {
  const forAll = 'grant it, as services/xds/deploy/rbac.yaml does';
  const forSome = 'services/xds/deploy/rbac-namespaced.yaml';
  if (resource === secrets) return `${forAll}, for the Secrets that XDS_GRPC_CERTIFICATE_SECRET names`;
  if (resource === events) return forAll;
  if (resource !== rateLimitConfigs)
    return `${forAll}, or set XDS_LEASE_NAMESPACE to a namespace where it is granted`;
  // An object has a namespace whether or not the setting names it.
  if (subresource !== '') return `${forAll}, or ${forSome} where XDS_NAMESPACES is set`;
  return namespace === ''
    ? `${forAll}, or set XDS_NAMESPACES to the namespaces where it is granted`
    : `grant it, as ${forSome} does`;
}

function fullName({ resource, subresource = '' }: Attempt): string {
  const plural = subresource === '' ? resource.plural : `${resource.plural}/${subresource}`;
  return resource.group === '' ? plural : `${plural}.${resource.group}`;
}
