import { type ApiClient, collectionPath, ResponseTooLarge, requireRecord } from './client.ts';
import type { KubeResource } from './resources.ts';

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
 * Lists objects page by page, consistent as of the first page, and resolves with the
 * resourceVersion that a watch continues from. Without a resourceVersion in the request the API
 * server returns the newest state, not that of a lagging replica.
 *
 * @throws ApiError 410 when the list took so long that its version has expired.
 */
export async function listObjects(
  api: ApiClient,
  options: ListOptions,
  onObject: (manifest: unknown) => void,
): Promise<string> {
  const { apiVersion, kind } = options.resource;
  let limit = options.pageSize;
  let next = '';
  for (;;) {
    const page = await readPage(api, options, { limit, next });
    // The items of a list need not repeat its type.
    for (const item of page.items) onObject({ apiVersion, kind, ...requireRecord(item, 'list item') });
    if (page.next === '') return page.resourceVersion;
    if (page.next === next) throw new Error('the API server sent the same continue token twice');
    ({ limit, next } = page);
  }
}

interface Page {
  readonly items: readonly unknown[];
  /** Empty on the last page. */
  readonly next: string;
  /** Size of the next page. */
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

/** @throws Error that names `what` without a version. */
export function requireVersion({ resourceVersion }: Readonly<Record<string, unknown>>, what: string): string {
  if (typeof resourceVersion !== 'string' || resourceVersion === '')
    throw new Error(`the API server sent ${what} without a resourceVersion`);
  return resourceVersion;
}
