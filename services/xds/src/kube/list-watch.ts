import { type ApiClient, ResponseTooLarge } from './client.ts';
import {
  ApiError,
  collectionPath,
  getApiVersion,
  type KubeObject,
  type KubeResource,
  parseKubeObject,
  requireRecord,
} from './objects.ts';

/** A consistent list of all objects. */
export interface ObjectList {
  readonly objects: ReadonlyMap<string, KubeObject>;
  /** A watch continues from here. */
  readonly resourceVersion: string;
}

export interface ListOptions {
  readonly resource: KubeResource;
  /** Empty for all. */
  readonly namespace: string;
  /** Such as `metadata.name=web`. */
  readonly fieldSelector?: string | undefined;
  readonly pageSize: number;
  readonly signal: AbortSignal;
}

/** A page of large objects takes a busy API server seconds. */
const pageTimeoutMs = 60_000;

/**
 * Lists objects page by page, consistent as of the first page. Without a resourceVersion in the
 * request the API server returns the newest state, not that of a lagging replica.
 *
 * @throws ApiError 410 when the list took so long that its version has expired.
 */
export async function listObjects(api: ApiClient, options: ListOptions): Promise<ObjectList> {
  const { resource } = options;
  const objects = new Map<string, KubeObject>();
  const type = { apiVersion: getApiVersion(resource), kind: resource.kind };
  let limit = options.pageSize;
  let next = '';
  for (;;) {
    const page = await readPage(api, options, { limit, next });
    for (const item of page.items) {
      // The items of a list need not repeat its type.
      const object = parseKubeObject({ ...type, ...requireRecord(item, 'list item') });
      objects.set(object.id, object);
    }
    if (page.next === '') return { objects, resourceVersion: page.resourceVersion };
    if (page.next === next) throw new Error('the API server sent the same continue token twice');
    ({ limit, next } = page);
  }
}

interface Page {
  readonly items: readonly unknown[];
  /** Empty on the last page. */
  readonly next: string;
  /** For the next page. */
  readonly limit: number;
  readonly resourceVersion: string;
}

/** Reads a page, with a lower limit when the objects are too large. */
async function readPage(
  api: ApiClient,
  { resource, namespace, fieldSelector, signal }: ListOptions,
  { limit, next }: Pick<Page, 'limit' | 'next'>,
): Promise<Page> {
  const path = collectionPath(resource, namespace);
  for (let most = limit; ; most = Math.ceil(most / 10)) {
    const query = {
      limit: String(most),
      ...(fieldSelector !== undefined && { fieldSelector }),
      ...(next !== '' && { continue: next }),
    };
    try {
      const value = await api.send({ method: 'GET', path, query, timeoutMs: pageTimeoutMs, signal });
      return { limit: most, ...parsePage(value) };
    } catch (error) {
      if (!(error instanceof ResponseTooLarge) || most === 1) throw error;
    }
  }
}

function parsePage(value: unknown): Omit<Page, 'limit'> {
  const list = requireRecord(value, 'list');
  const metadata = requireRecord(list.metadata, 'list: metadata');
  const { items } = list;
  if (!Array.isArray(items)) throw new Error('the API server sent a list without items');
  return {
    items,
    next: typeof metadata.continue === 'string' ? metadata.continue : '',
    resourceVersion: requireVersion(metadata, 'a list'),
  };
}

function requireVersion({ resourceVersion }: Readonly<Record<string, unknown>>, what: string): string {
  if (typeof resourceVersion !== 'string' || resourceVersion === '')
    throw new Error(`the API server sent ${what} without a resourceVersion`);
  return resourceVersion;
}

/** One line of a watch. */
export type WatchEvent =
  | { readonly type: 'put'; readonly object: KubeObject }
  | { readonly type: 'deleted'; readonly object: KubeObject }
  /** Nothing has changed up to this version. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string };

/**
 * @throws ApiError for an ERROR event, with its code (410: the version of the watch has expired).
 * @throws Error for anything else that is not an event.
 */
export function parseWatchEvent(line: string): WatchEvent {
  const { type, object } = requireRecord(parseJson(line), 'watch event');
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'put', object: parseKubeObject(object) };
    case 'DELETED':
      return { type: 'deleted', object: parseKubeObject(object) };
    case 'BOOKMARK': {
      const { metadata } = requireRecord(object, 'bookmark');
      return {
        type: 'bookmark',
        resourceVersion: requireVersion(requireRecord(metadata, 'bookmark: metadata'), 'a bookmark'),
      };
    }
    case 'ERROR':
      throw toApiError(object);
    default:
      throw new Error(`the API server sent an event of an unknown type: ${String(type).slice(0, 100)}`);
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new Error('the API server sent a line that is not JSON', { cause });
  }
}

/** The object of an ERROR event is a `metav1.Status`. */
function toApiError(object: unknown): ApiError {
  const { code, reason, message } = requireRecord(object, 'status');
  return new ApiError(typeof code === 'number' ? code : 500, {
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' ? message : '',
  });
}
