import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { XdsMetrics } from '../metrics.ts';
import type { ApiClient } from './client.ts';
import { ApiError, explainApiError, hasStatus } from './errors.ts';
import type { KubeObject } from './objects.ts';
import {
  collectionPath,
  type KubeResource,
  listObjects,
  type ObjectList,
  readWatchEvent,
} from './objects.ts';

/** Which objects to follow, and how. */
export interface ReflectorOptions {
  readonly resource: KubeResource;
  /** Empty for all. */
  readonly namespace: string;
  /** Such as `metadata.name=web`; all objects when absent. */
  readonly fieldSelector?: string;
  /** All objects are listed anew that often, in case a watch has missed something; 0 for never. */
  readonly resyncMs: number;
  /** Default 500. */
  readonly pageSize?: number;
  /** Waiting times after failures; half a second at first, 30 s at most, with full jitter, unless told otherwise. */
  readonly backoff?: BackoffOptions;
  /** A watch on which nothing arrives for so long is opened anew. Default 150000. */
  readonly idleTimeoutMs?: number;
}

/** What a reflector needs. */
export interface ReflectorDeps {
  readonly api: ApiClient;
  readonly logger: Logger;
  /** Those of the source; absent where something else is followed. */
  readonly metrics?: Pick<XdsMetrics, 'relists' | 'sourceErrors' | 'lastEventTimestampSeconds'>;
  /** Unix time in milliseconds; the system's when absent. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** What has become of the objects. The first event is a `replaced`; then come only differences. */
export type ReflectorEvent =
  | { readonly type: 'replaced'; readonly objects: readonly KubeObject[] }
  | { readonly type: 'changed'; readonly object: KubeObject }
  | { readonly type: 'deleted'; readonly object: KubeObject };

/** Why objects are not followed now, and since when. */
interface Outage {
  /** As the log has it. */
  readonly reason: string;
  /** Unix time in milliseconds of the first failure. */
  readonly sinceMs: number;
}

/** Follows the objects of one kind. */
export interface Reflector {
  /** Begins; events come in the order of the API server. An error that the handler throws is logged and passed over. */
  start(onEvent: (event: ReflectorEvent) => void): void;
  /** Resolves once the first list has been handed over; pending as long as there is none. */
  readonly synced: Promise<void>;
  /** What keeps it from following now; undefined while nothing does. */
  outage(): Outage | undefined;
  /** Resolves when the last event has been handed over. Idempotent. */
  close(): Promise<void>;
}

const defaultPageSize = 500;
const defaultBackoff: BackoffOptions = { initialMs: 500, maxMs: 30_000, jitter: 1 };

/** The API server sends a bookmark about once a minute; the second one in a row that is missing is a dead connection. */
const defaultIdleTimeoutMs = 150_000;

/** The API server ends a watch after a time between these, so that not all clients come back at once. */
const watchSeconds = { min: 290, max: 590 };

/** A watch that lived so long has worked, and what ends it is a new failure, to be retried soon. */
const healthyMs = 1_000;

/**
 * Makes a reflector: LIST, then WATCH from there, for ever. A broken watch goes on where it was, so nothing is lost; one
 * whose place the API server has forgotten (410) begins again with a list, of which only the differences are told.
 * Whatever fails is tried again, and what is known stays known meanwhile.
 */
export function createReflector(options: ReflectorOptions, deps: ReflectorDeps): Reflector {
  const { resource, namespace, fieldSelector, resyncMs, idleTimeoutMs = defaultIdleTimeoutMs } = options;
  const { api, metrics, now = Date.now, random = Math.random, sleep = sleepFor } = deps;
  const logger = deps.logger.child({ resource: resource.plural, ...(namespace !== '' && { namespace }) });
  const delayAfter = backoffDelays({ random, ...(options.backoff ?? defaultBackoff) });
  const closing = new AbortController();
  const synced = Promise.withResolvers<void>();
  let onEvent: (event: ReflectorEvent) => void = () => undefined;
  let running: Promise<void> | undefined;
  /** Undefined before the first list. */
  let known: Map<string, KubeObject> | undefined;
  /** The resourceVersion to watch from; undefined when a list is due. */
  let cursor: string | undefined;
  let resync = new AbortController().signal;
  /** Whether a watch has worked since the last list. */
  let proven = false;
  let failures = 0;
  let outage: Outage | undefined;

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      const operation = cursor === undefined ? 'list' : 'watch';
      try {
        await (operation === 'list' ? list() : watch());
      } catch (error) {
        if (closing.signal.aborted) return;
        if (operation === 'watch' && resync.aborted) cursor = undefined;
        else await recover(error, operation);
      }
    }
  }

  async function list(): Promise<void> {
    const { pageSize = defaultPageSize } = options;
    const { signal } = closing;
    const listed = await listObjects(api, { resource, namespace, fieldSelector, pageSize, signal });
    metrics?.relists.inc();
    heard();
    reconcile(listed);
    cursor = listed.resourceVersion;
    proven = false;
    resync = resyncSignal();
  }

  /** Ends by itself when the API server ends the watch in good order. */
  async function watch(): Promise<void> {
    const openedMs = now();
    try {
      const lines = await api.watch({
        path: collectionPath(resource, namespace),
        query: {
          watch: 'true',
          allowWatchBookmarks: 'true',
          ...(fieldSelector !== undefined && { fieldSelector }),
          resourceVersion: cursor ?? '',
          timeoutSeconds: String(watchTimeoutSeconds()),
        },
        idleTimeoutMs,
        signal: AbortSignal.any([closing.signal, resync]),
      });
      working();
      for await (const line of lines) take(line);
    } finally {
      if (now() - openedMs >= healthyMs) {
        failures = 0;
        proven = true;
      }
    }
    // A server that closes what it has just opened is not asked again and again.
    if (now() - openedMs < healthyMs) await pause(0);
  }

  function take(line: string): void {
    const event = readWatchEvent(line);
    heard();
    proven = true;
    if (event.type === 'bookmark') {
      cursor = event.resourceVersion;
      return;
    }
    cursor = event.object.resourceVersion;
    if (event.type === 'put') put(event.object);
    else remove(event.object);
  }

  function reconcile({ objects }: ObjectList): void {
    if (known === undefined) {
      known = new Map(objects);
      emit({ type: 'replaced', objects: [...objects.values()] });
      synced.resolve();
      return;
    }
    for (const old of [...known.values()]) {
      if (!objects.has(old.id)) remove(old);
    }
    for (const object of objects.values()) put(object);
  }

  function put(object: KubeObject): void {
    const old = known?.get(object.id);
    if (old?.uid === object.uid && old.resourceVersion === object.resourceVersion) return;
    // Deleted and made anew while nobody watched.
    if (old !== undefined && old.uid !== object.uid) remove(old);
    known?.set(object.id, object);
    emit({ type: 'changed', object });
  }

  function remove(object: KubeObject): void {
    if (known?.delete(object.id)) emit({ type: 'deleted', object });
  }

  function emit(event: ReflectorEvent): void {
    try {
      onEvent(event);
    } catch (err) {
      logger.error({ err, event: event.type }, 'an event of the API server was not processed');
    }
  }

  async function recover(error: unknown, operation: 'list' | 'watch'): Promise<void> {
    metrics?.sourceErrors.inc({ operation });
    if (operation === 'watch' && !canResume(error)) cursor = undefined;
    if (operation === 'watch' && hasStatus(error, 410)) {
      logger.info({ reason: error.message }, 'the watch is too old to go on: listing anew');
      // Nothing is wrong with the server, so the list comes at once; but not if the last one was of no use either.
      if (!proven) await pause(0);
      return;
    }
    report(error, operation);
    await pause(error instanceof ApiError ? error.retryAfterMs : 0);
  }

  async function pause(atLeastMs: number): Promise<void> {
    failures += 1;
    const ms = Math.max(delayAfter(failures), Math.min(atLeastMs, maxRetryAfterMs));
    await sleep(ms, { signal: closing.signal }).catch(() => undefined);
  }

  /** Once for each reason, however often it is tried. */
  function report(error: unknown, operation: 'list' | 'watch'): void {
    const advice = explainApiError(error, { verb: operation, resource, namespace });
    const reason = advice ?? (error instanceof Error ? error.message : String(error));
    if (reason === outage?.reason) {
      logger.debug({ reason, operation, failures }, 'still no contact with the API server');
      return;
    }
    const state = known === undefined ? 'nothing is known before the first list' : 'what is known stays';
    logger.warn({ reason, operation, state }, 'objects cannot be followed; trying again');
    outage = { reason, sinceMs: outage?.sinceMs ?? now() };
  }

  function working(): void {
    if (outage === undefined) return;
    logger.info({ outageMs: now() - outage.sinceMs }, 'objects are followed again');
    outage = undefined;
  }

  function heard(): void {
    metrics?.lastEventTimestampSeconds.set(now() / 1_000);
  }

  function watchTimeoutSeconds(): number {
    return Math.floor(watchSeconds.min + random() * (watchSeconds.max - watchSeconds.min));
  }

  function resyncSignal(): AbortSignal {
    // Spread by a tenth, so that replicas do not list at the same moment.
    return resyncMs > 0
      ? AbortSignal.timeout(Math.ceil(resyncMs * (0.9 + 0.2 * random())))
      : new AbortController().signal;
  }

  return {
    synced: synced.promise,
    outage: () => outage,
    start(handler) {
      onEvent = handler;
      running ??= run();
    },
    async close() {
      closing.abort(new Error('closed'));
      await running;
    },
  };
}

/** Longer than this we do not obey a Retry-After, lest a proxy's mistake stops us for a day. */
const maxRetryAfterMs = 60_000;

/**
 * Whether a watch that failed so may go on where it was. Not after a refusal, and not after a line that could not be
 * understood, which would come again.
 */
function canResume(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 429 || error.status >= 500;
  // What Node reports of connections has a code; what our readers report has none.
  return error instanceof Error && 'code' in error && typeof error.code === 'string';
}
