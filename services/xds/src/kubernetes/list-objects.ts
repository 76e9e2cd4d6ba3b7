import { AnswerTooLarge, type ApiClient } from './api-client.ts';
import { type KubeObject, readKubeObject, requireRecord } from './kube-object.ts';
import { apiVersionOf, collectionPath, type KubeResource } from './kube-resource.ts';

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
