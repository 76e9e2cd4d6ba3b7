import { ApiError } from './api-error.ts';
import { type KubeObject, readKubeObject, requireRecord } from './kube-object.ts';

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
