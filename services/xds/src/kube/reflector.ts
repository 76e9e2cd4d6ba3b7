import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { ConfigObject, SourceOutage } from '../catalog/source.ts';
import { readStoredHosts, readStoredManifest, toStoredVersion } from '../catalog/stored-version.ts';
import type { XdsMetrics } from '../metrics.ts';
import { type ApiClient, apiBackoff, collectionPath, requireRecord } from './client.ts';
import { ApiError, describeApiError, hasStatus, toApiError } from './errors.ts';
import { listObjects, requireVersion } from './list.ts';
import { RecoveryDelay } from './recovery.ts';
import type { KubeResource } from './resources.ts';

/** An object of any kind. */
export interface KubeObject extends ConfigObject {
  /** Opaque; differs after each change. */
  readonly resourceVersion: string;
  readonly manifest: Readonly<Record<string, unknown>>;
}

export interface ReflectorOptions {
  readonly api: ApiClient;
  readonly logger: Logger;
  /** Where the objects are stored by id, with those of other reflectors. Default a new map. */
  readonly objects?: Map<string, KubeObject>;
  /** Absent for objects that are not the source. */
  readonly metrics?: Pick<XdsMetrics, 'relists' | 'sourceErrors' | 'lastEventTimestampSeconds'>;
  readonly resource: KubeResource;
  /**
   * Says that the CRD may be installed later, and what happens to known objects when it is missing:
   * all are `deleted`; or they are `kept`, since gateways keep those of a version that is no longer
   * served.
   * Default: a missing CRD is an outage.
   */
  readonly whenMissing?: 'deleted' | 'kept';
  /** Empty for all. */
  readonly namespace: string;
  /** Such as `metadata.name=web`. */
  readonly fieldSelector?: string;
  /** Interval of complete lists, in case a watch has missed something; 0 disables them. */
  readonly resyncMs: number;
  /** Default 500. */
  readonly pageSize?: number;
  /**
   * Delays after failures; by default half a second to 30 s, with full jitter. The return of the
   * API server ends them.
   */
  readonly backoff?: BackoffOptions;
  /** A watch that receives nothing for this time is opened again. Default 150000. */
  readonly idleTimeoutMs?: number;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/**
 * The first event is `replaced`; then only differences follow. For kinds with generations, changes
 * of the metadata or the status, most of them our own, are no events, except that of the last valid
 * version.
 */
export type ReflectorEvent =
  | { readonly type: 'replaced'; readonly objects: readonly KubeObject[] }
  | { readonly type: 'changed'; readonly object: KubeObject }
  | {
      readonly type: 'deleted';
      readonly id: string;
      /** A list did not contain it. */
      readonly byList?: boolean;
    };

const defaultPageSize = 500;
/** Delay until a missing resource is listed again; up to twice as long. */
const missingRetryMs = 2_500;
/** The API server sends a bookmark about once a minute: two missing ones mean a dead connection. */
const defaultIdleTimeoutMs = 150_000;

/** Random duration of a watch, so that not all clients reconnect at once. */
const watchSeconds = { min: 290, max: 590 };

/** A watch that lived this long has worked: its end is a new failure, with a short delay. */
const healthyMs = 1_000;

/** Bound of `Retry-After`, because a misconfigured proxy could stop the service for a day. */
const maxRetryAfterMs = 60_000;

/**
 * Follows the objects of one kind: LIST, then WATCH from there. A broken watch resumes at its
 * version, so that no event is lost; when that version has expired (410), a new list is compared
 * with the known objects. Failures are retried, and known objects stay.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #recovery: RecoveryDelay;
  readonly #delayAfter: (failures: number) => number;
  readonly #closing = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  #onEvent: (event: ReflectorEvent) => void = () => undefined;
  #running: Promise<void> | undefined;
  readonly #objects: Map<string, KubeObject>;
  #hasListed: boolean = false;
  #isMissing: boolean = false;
  /** The resourceVersion to watch from; undefined when a list is due. */
  #cursor: string | undefined;
  #resync = new AbortController().signal;
  /** Whether a watch has worked since the last list. */
  #hasWatched: boolean = false;
  #failures = 0;
  #outage: SourceOutage | undefined;

  constructor(options: ReflectorOptions) {
    const { resource, namespace, backoff = apiBackoff } = options;
    const { now = Date.now, random = Math.random, sleep = sleepFor } = options;
    this.#options = options;
    this.#objects = options.objects ?? new Map();
    this.#now = now;
    this.#random = random;
    this.#recovery = new RecoveryDelay({ api: options.api, random, sleep });
    this.#delayAfter = backoffDelays({ random, ...backoff });
    this.#logger = options.logger.child({
      resource: resource.plural,
      ...(namespace !== '' && { namespace }),
    });
  }

  /** Resolves once the first list was passed on. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** Whether the CRD is not installed. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Undefined while objects are followed. */
  outage(): SourceOutage | undefined {
    return this.#outage;
  }

  /** Passes events on in order. An error of the handler is logged, and the event skipped. */
  start(onEvent: (event: ReflectorEvent) => void): void {
    this.#onEvent = onEvent;
    this.#running ??= this.#run();
  }

  /** Resolves after the last event. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const operation = this.#cursor === undefined ? 'list' : 'watch';
      try {
        await (operation === 'list' ? this.#list() : this.#watch());
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        if (operation === 'watch' && this.#resync.aborted) this.#cursor = undefined;
        else if (operation === 'list' && hasStatus(error, 404) && this.#mayBeMissing())
          await this.#handleMissing();
        else await this.#recover(error, operation);
      }
    }
  }

  async #list(): Promise<void> {
    const { api, resource, namespace, fieldSelector, metrics, pageSize = defaultPageSize } = this.#options;
    const { signal } = this.#closing;
    const objects = new Map<string, KubeObject>();
    const listed = { resource, namespace, fieldSelector, pageSize, signal };
    const resourceVersion = await listObjects(api, listed, (manifest) => {
      const object = parseKubeObject(manifest);
      objects.set(object.id, object);
    });
    metrics?.relists.inc();
    this.#recordEventTime();
    this.#isMissing = false;
    this.#reconcile(objects);
    this.#cursor = resourceVersion;
    this.#hasWatched = false;
    this.#resync = this.#createResyncSignal();
  }

  #mayBeMissing(): boolean {
    const { whenMissing, namespace } = this.#options;
    if (whenMissing !== 'kept') return whenMissing === 'deleted';
    return ![...this.#objects.values()].some((one) => namespace === '' || one.namespace === namespace);
  }

  /** The API server deletes all objects before a CRD. */
  async #handleMissing(): Promise<void> {
    if (!this.#isMissing) this.#logger.info('resource not installed, following its objects once it is');
    this.#isMissing = true;
    this.#endOutage();
    this.#reconcile(new Map());
    const { sleep = sleepFor } = this.#options;
    const delayMs = missingRetryMs * (1 + this.#random());
    await sleep(delayMs, { signal: this.#closing.signal }).catch(() => undefined);
  }

  /** Resolves when the API server ends the watch regularly. */
  async #watch(): Promise<void> {
    const { api, resource, namespace, fieldSelector, idleTimeoutMs = defaultIdleTimeoutMs } = this.#options;
    const { min, max } = watchSeconds;
    const openedMs = this.#now();
    try {
      const lines = await api.watch({
        path: collectionPath(resource, namespace),
        query: {
          watch: 'true',
          allowWatchBookmarks: 'true',
          ...(fieldSelector !== undefined && { fieldSelector }),
          resourceVersion: this.#cursor ?? '',
          timeoutSeconds: String(Math.floor(min + this.#random() * (max - min))),
        },
        idleTimeoutMs,
        signal: AbortSignal.any([this.#closing.signal, this.#resync]),
      });
      this.#endOutage();
      for await (const line of lines) this.#handleLine(line);
    } finally {
      if (this.#now() - openedMs >= healthyMs) {
        this.#failures = 0;
        this.#recovery.reset();
        this.#hasWatched = true;
      }
    }
    // Backs off from a server that closes watches right after they were opened.
    if (this.#now() - openedMs < healthyMs) await this.#pause(undefined);
  }

  #handleLine(line: string): void {
    const event = parseWatchEvent(line);
    this.#recordEventTime();
    this.#hasWatched = true;
    if (event.type === 'bookmark') {
      this.#cursor = event.resourceVersion;
      return;
    }
    this.#cursor = event.object.resourceVersion;
    if (event.type === 'put') this.#put(event.object);
    else this.#remove(event.object.id);
  }

  #reconcile(listed: ReadonlyMap<string, KubeObject>): void {
    if (!this.#hasListed) {
      this.#hasListed = true;
      for (const object of listed.values()) this.#objects.set(object.id, object);
      this.#emit({ type: 'replaced', objects: [...listed.values()] });
      this.#synced.resolve();
      return;
    }
    const { namespace } = this.#options;
    for (const old of [...this.#objects.values()])
      if (!listed.has(old.id) && (namespace === '' || namespace === old.namespace))
        this.#remove(old.id, { byList: true });
    for (const object of listed.values()) this.#put(object);
  }

  #put(object: KubeObject): void {
    const { id, uid, generation, resourceVersion } = object;
    const old = this.#objects.get(id);
    const isSame = old?.uid === uid;
    if (isSame && old.resourceVersion === resourceVersion) return;
    // Deleted and created again between watches.
    if (old !== undefined && !isSame) this.#remove(id);
    const isNew = !isSame || generation === 0 || old.generation !== generation;
    const next = isNew ? object : shareSpec(object, old);
    this.#objects.set(id, next);
    if (isNew || old.stored?.generation !== object.stored?.generation)
      this.#emit({ type: 'changed', object: next });
  }

  #remove(id: string, how: { readonly byList?: true } = {}): void {
    if (this.#objects.delete(id)) this.#emit({ type: 'deleted', id, ...how });
  }

  #emit(event: ReflectorEvent): void {
    try {
      this.#onEvent(event);
    } catch (err) {
      this.#logger.error({ err, event: event.type }, 'failed to process an event of the API server');
    }
  }

  async #recover(error: unknown, operation: 'list' | 'watch'): Promise<void> {
    this.#options.metrics?.sourceErrors.inc({ operation });
    if (operation === 'watch' && !canResume(error)) this.#cursor = undefined;
    if (operation === 'watch' && hasStatus(error, 410)) {
      this.#logger.info({ reason: error.message }, 'watch expired, listing again');
      // The server works, so the list follows at once, unless the version of the last one was
      // unusable, too.
      if (!this.#hasWatched) await this.#pause(error);
      return;
    }
    this.#reportOutage(error, operation);
    await this.#pause(error);
  }

  async #pause(error: unknown): Promise<void> {
    this.#failures += 1;
    const atLeastMs = error instanceof ApiError ? error.retryAfterMs : 0;
    const ms = Math.max(this.#delayAfter(this.#failures), Math.min(atLeastMs, maxRetryAfterMs));
    await this.#recovery.wait(ms, { error, signal: this.#closing.signal }).catch(() => undefined);
  }

  /** Warns once per reason. */
  #reportOutage(error: unknown, operation: 'list' | 'watch'): void {
    const { resource, namespace } = this.#options;
    const reason = describeApiError(error, { verb: operation, resource, namespace });
    if (reason === this.#outage?.reason) {
      this.#logger.debug({ reason, operation, failures: this.#failures }, 'API server still unreachable');
      return;
    }
    const state = !this.#hasListed ? 'not synced yet' : 'keeping known objects';
    this.#logger.warn({ reason, operation, state }, 'cannot follow objects, retrying');
    const sinceMs = this.#outage?.sinceMs ?? this.#now();
    this.#outage = { reason, sinceMs, ...(hasStatus(error, 403) && { isForbidden: true }) };
  }

  #endOutage(): void {
    if (this.#outage === undefined) return;
    this.#logger.info({ outageMs: this.#now() - this.#outage.sinceMs }, 'following objects again');
    this.#outage = undefined;
  }

  #recordEventTime(): void {
    this.#options.metrics?.lastEventTimestampSeconds.set(this.#now() / 1_000);
  }

  #createResyncSignal(): AbortSignal {
    const { resyncMs } = this.#options;
    // ±10 %, so that replicas do not list at the same moment.
    return resyncMs > 0
      ? AbortSignal.timeout(Math.ceil(resyncMs * (0.9 + 0.2 * this.#random())))
      : new AbortController().signal;
  }
}

/**
 * Thousands of status writes would otherwise parse a second copy of each spec, which stays, and by
 * the identity of the spec, catalogs see that it has not changed.
 */
function shareSpec(object: KubeObject, { manifest: { spec } }: KubeObject): KubeObject {
  return { ...object, manifest: { ...object.manifest, spec } };
}

/** Not after an error response or an invalid line, which would come again. */
function canResume(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 429 || error.status >= 500;
  // Node's network errors have a code; parse errors have none.
  return error instanceof Error && 'code' in error && typeof error.code === 'string';
}

/** One line of a watch. */
type WatchEvent =
  | { readonly type: 'put'; readonly object: KubeObject }
  | { readonly type: 'deleted'; readonly object: KubeObject }
  /** Nothing has changed up to this version. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string };

/**
 * @throws ApiError for an ERROR event, with its code (410: the version of the watch has expired).
 * @throws Error for anything else that is not an event.
 */
function parseWatchEvent(line: string): WatchEvent {
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
      throw toApiError(requireRecord(object, 'status'));
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

/**
 * Parses an object. `managedFields` and kubectl's last-applied annotation, which repeat the spec,
 * are dropped from the manifest: they take more memory than everything else.
 *
 * @throws Error without a name, uid or resourceVersion.
 */
export function parseKubeObject(value: unknown): KubeObject {
  const object = parseConfigObject(value);
  const { metadata } = requireRecord(value, 'object');
  return { ...object, resourceVersion: requireVersion(requireRecord(metadata, 'metadata'), 'an object') };
}

/** Parses an object that may not be stored yet. @throws Error without a name or uid. */
export function parseConfigObject(value: unknown): Omit<KubeObject, 'resourceVersion'> {
  const manifest = requireRecord(value, 'object');
  const metadata = requireRecord(manifest.metadata, 'metadata');
  const requireText = (key: string): string => {
    const field = metadata[key];
    if (typeof field !== 'string' || field === '') throw new Error(`an object has no metadata.${key}`);
    return field;
  };
  const name = requireText('name');
  const namespace = typeof metadata.namespace === 'string' ? metadata.namespace : '';
  const { creationTimestamp } = metadata;
  const generation = typeof metadata.generation === 'number' ? metadata.generation : 0;
  const stored = readStoredManifest(manifest, generation);
  const allowedHosts = readStoredHosts(manifest, generation);
  const id = `${namespace}/${name}`;
  return {
    id,
    namespace,
    name,
    order: id,
    uid: requireText('uid'),
    generation,
    createdMs: typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) || 0 : 0,
    manifest: { ...manifest, metadata: withoutBookkeeping(metadata) },
    ...(stored && { stored: toStoredVersion(stored) }),
    ...(allowedHosts.length > 0 && { allowedHosts }),
  };
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

function withoutBookkeeping(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { managedFields: _, annotations, ...rest } = metadata;
  if (typeof annotations !== 'object' || annotations === null) return rest;
  const kept = Object.entries(annotations).filter(([key]) => key !== lastApplied);
  return kept.length === 0 ? rest : { ...rest, annotations: Object.fromEntries(kept) };
}
