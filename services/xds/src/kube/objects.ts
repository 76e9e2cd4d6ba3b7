import { AnswerTooLarge, type ApiClient } from './client.ts';
import { ApiError } from './errors.ts';

/** What every object of Kubernetes says of itself. */
export interface KubeObject {
  /** `namespace/name`. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Opaque; another one for each change. */
  readonly resourceVersion: string;
  /** 0 where the kind has none. */
  readonly generation: number;
  /** Unix time in milliseconds; 0 where the object does not tell. */
  readonly createdMs: number;
  /** The decoded JSON. */
  readonly manifest: Readonly<Record<string, unknown>>;
}

/**
 * Reads an object from the API server's JSON. Bookkeeping that repeats the spec (`managedFields`, kubectl's
 * last-applied annotation) is left out of the manifest: it takes more memory than all the rest.
 *
 * @throws Error when it has no name, uid or resourceVersion: then it is no object of an API server.
 */
export function readKubeObject(value: unknown): KubeObject {
  const manifest = requireRecord(value, 'an object');
  const metadata = requireRecord(manifest.metadata, 'metadata');
  const text = (key: string): string => {
    const field = metadata[key];
    if (typeof field !== 'string' || field === '') throw new Error(`an object without metadata.${key}`);
    return field;
  };
  const name = text('name');
  const namespace = typeof metadata.namespace === 'string' ? metadata.namespace : '';
  const { generation, creationTimestamp } = metadata;
  return {
    id: `${namespace}/${name}`,
    namespace,
    name,
    uid: text('uid'),
    resourceVersion: text('resourceVersion'),
    generation: typeof generation === 'number' ? generation : 0,
    createdMs: typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) || 0 : 0,
    manifest: { ...manifest, metadata: withoutBookkeeping(metadata) },
  };
}

/** The value as an object of JSON. Throws an Error that names `what` for anything else. */
export function requireRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`the API server sent no ${what}`);
  }
  // An object that is no array, checked just above: JSON has string keys and unknown values.
  return value as Readonly<Record<string, unknown>>;
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

function withoutBookkeeping(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { managedFields: _, annotations, ...rest } = metadata;
  if (typeof annotations !== 'object' || annotations === null) return rest;
  const kept = Object.entries(annotations).filter(([key]) => key !== lastApplied);
  return kept.length === 0 ? rest : { ...rest, annotations: Object.fromEntries(kept) };
}

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

/** All objects at one moment. */
export interface ObjectList {
  readonly objects: ReadonlyMap<string, KubeObject>;
  /** From where a watch goes on. */
  readonly resourceVersion: string;
}

/** What to list. */
export interface ListOptions {
  readonly resource: KubeResource;
  /** Empty for all. */
  readonly namespace: string;
  /** Such as `metadata.name=web`; all objects when absent. */
  readonly fieldSelector?: string | undefined;
  /** Objects in one answer; the whole list has that of the moment of its first page. */
  readonly pageSize: number;
  readonly signal: AbortSignal;
}

/** A page of large objects takes a busy API server seconds. */
const pageTimeoutMs = 60_000;

/**
 * Lists objects page by page. Without a resourceVersion in the request the answer is the newest state, never that of a
 * replica that lags behind.
 *
 * @throws ApiError 410 when the list took so long that the API server has forgotten its moment: list anew.
 */
export async function listObjects(api: ApiClient, options: ListOptions): Promise<ObjectList> {
  const { resource, namespace, fieldSelector, signal } = options;
  const path = collectionPath(resource, namespace);
  const objects = new Map<string, KubeObject>();
  let limit = options.pageSize;
  let next = '';

  async function nextPage(): Promise<Page> {
    for (;;) {
      const query = {
        limit: String(limit),
        ...(fieldSelector !== undefined && { fieldSelector }),
        ...(next !== '' && { continue: next }),
      };
      try {
        return readPage(await api.send({ method: 'GET', path, query, timeoutMs: pageTimeoutMs, signal }));
      } catch (error) {
        // A namespace full of the largest objects must not keep the others from being seen.
        if (!(error instanceof AnswerTooLarge) || limit === 1) throw error;
        limit = Math.ceil(limit / 10);
      }
    }
  }

  for (;;) {
    const page = await nextPage();
    for (const item of page.items) {
      const object = readKubeObject(withType(item, resource));
      objects.set(object.id, object);
    }
    if (page.next === '') return { objects, resourceVersion: page.resourceVersion };
    if (page.next === next) throw new Error('the API server continues a list where it was');
    next = page.next;
  }
}

/** The members of a list need not repeat what they are. */
function withType(item: unknown, resource: KubeResource): unknown {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    ...requireRecord(item, 'an object in a list'),
  };
}

interface Page {
  readonly items: readonly unknown[];
  readonly next: string;
  readonly resourceVersion: string;
}

function readPage(value: unknown): Page {
  const list = requireRecord(value, 'a list');
  const metadata = requireRecord(list.metadata, 'metadata of a list');
  const { items } = list;
  const { resourceVersion } = metadata;
  if (!Array.isArray(items)) throw new Error('the API server sent a list without items');
  if (typeof resourceVersion !== 'string' || resourceVersion === '') {
    throw new Error('the API server sent a list without a resourceVersion');
  }
  return {
    items,
    next: typeof metadata.continue === 'string' ? metadata.continue : '',
    resourceVersion,
  };
}

/** One line of a watch. */
export type WatchEvent =
  | { readonly type: 'put'; readonly object: KubeObject }
  | { readonly type: 'deleted'; readonly object: KubeObject }
  /** Nothing happened up to this version. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string };

/**
 * Reads a line of a watch.
 *
 * @throws ApiError for an ERROR event, with the code that it carries (410: the version is too old to go on from).
 * @throws Error for what is no event.
 */
export function readWatchEvent(line: string): WatchEvent {
  const { type, object } = requireRecord(parse(line), 'an event');
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'put', object: readKubeObject(object) };
    case 'DELETED':
      return { type: 'deleted', object: readKubeObject(object) };
    case 'BOOKMARK':
      return { type: 'bookmark', resourceVersion: bookmarkVersion(object) };
    case 'ERROR':
      throw errorEvent(object);
    default:
      throw new Error(`the API server sent an event of an unknown type: ${String(type).slice(0, 100)}`);
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new Error('the API server sent a line that is no JSON', { cause });
  }
}

function bookmarkVersion(object: unknown): string {
  const { resourceVersion } = requireRecord(requireRecord(object, 'a bookmark').metadata, 'metadata');
  if (typeof resourceVersion !== 'string' || resourceVersion === '') {
    throw new Error('the API server sent a bookmark without a resourceVersion');
  }
  return resourceVersion;
}

/** Its object is a `metav1.Status`. */
function errorEvent(object: unknown): ApiError {
  const { code, reason, message } = requireRecord(object, 'a status');
  return new ApiError(typeof code === 'number' ? code : 500, {
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' ? message : '',
  });
}
