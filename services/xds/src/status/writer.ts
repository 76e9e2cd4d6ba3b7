import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { ConfigObject } from '../catalog/source.ts';
import type { Context } from '../context.ts';
import { type ApiClient, apiBackoff, objectPath, requireRecord, TokenBucket } from '../kube/client.ts';
import { ApiError, describeApiError, hasStatus } from '../kube/errors.ts';
import type { Leadership } from '../kube/lease.ts';
import { RecoveryDelay } from '../kube/recovery.ts';
import { rateLimitConfigs } from '../kube/resources.ts';
import type { ObjectStatus } from './object-status.ts';
import type { StatusPutOptions, StatusWriter } from './reporter.ts';
import { hasStatusManifest, type StatusManifest, toStatusManifest } from './status-manifest.ts';
import { type QueuedWrite, RefusedStatuses, WriteQueue } from './write-queue.ts';

export interface KubernetesStatusWriterOptions {
  readonly api: ApiClient;
  /** The source: a status that its object has already is not written. */
  readonly objects: { get(id: string): ConfigObject | undefined };
  readonly leadership: Leadership;
  /** Changes are collected for this time. */
  readonly debounceMs: number;
  /** Rate after the burst. Default 50: 10,000 objects take three minutes. */
  readonly writesPerSecond?: number;
  /** Default 100. */
  readonly burst?: number;
  /** Parallel writes. Default 4. */
  readonly concurrency?: number;
  /** Interval at which all statuses are compared with those of the objects. Default 300000. */
  readonly recheckMs?: number;
  /**
   * Delays after failures; by default half a second to 30 s, with full jitter. The return of the
   * API server ends them.
   */
  readonly backoff?: BackoffOptions;
  readonly random?: () => number;
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Owner of the fields in server-side apply. */
const fieldManager = 'tollgate-xds';

/** Shorter than lease duration minus renew deadline: writes of two leaders do not overlap. */
const writeTimeoutMs = 5_000;

/** Comparing 10,000 statuses takes 70 ms: other work runs in between. */
const idsPerTurn = 500;

/** Delay after a conflict: the source has to deliver the new version of the object. */
const conflictDelayMs = 10;

/** Remembered reasons of refusals: about one per namespace without the privilege. */
const maxReasons = 100;

/** A status, and the version of the object that has it. */
interface LiveStatus {
  readonly status: unknown;
  readonly resourceVersion: string;
}

/**
 * Writes the status subresource by server-side apply. Only the leader writes, only what differs
 * from the status of the object, and only the latest of several changes. Each write comes back as a
 * MODIFIED event with the same generation.
 */
export class KubernetesStatusWriter implements StatusWriter {
  readonly #context: Context;
  readonly #options: KubernetesStatusWriterOptions;
  readonly #backoff: BackoffOptions;
  readonly #delayAfter: (failures: number) => number;
  readonly #sleep: NonNullable<KubernetesStatusWriterOptions['sleep']>;
  readonly #recovery: RecoveryDelay;
  readonly #bucket: TokenBucket;
  readonly #closing = new AbortController();
  readonly #wanted = new Map<string, ObjectStatus>();
  /** Statuses returned by the API server that the source has not delivered yet. */
  readonly #written = new WeakMap<ConfigObject, LiveStatus>();
  /** Objects of which the API server has a version that the source has not delivered yet. */
  readonly #outdated = new WeakSet<ConfigObject>();
  readonly #refused: RefusedStatuses;
  readonly #loggedReasons = new Set<string>();
  /** Whether the CRD is older than this service. */
  #lacksLastValid: boolean = false;
  #hasWarnedOfCrd: boolean = false;
  readonly #queue = new WriteQueue();
  #wake = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #recheck: NodeJS.Timeout | undefined;
  #stopListening: () => void = () => undefined;
  /** Rounds in a row in which the API server was unreachable, and the last error. */
  #outages = 0;
  #outageError: unknown;
  #outageReason: string | undefined;

  constructor(context: Context, options: KubernetesStatusWriterOptions) {
    const { backoff = apiBackoff, random = Math.random, sleep = sleepFor } = options;
    const { writesPerSecond: ratePerSecond = 50, burst = 100 } = options;
    this.#context = context;
    this.#options = options;
    this.#backoff = backoff;
    this.#sleep = sleep;
    this.#delayAfter = backoffDelays({ random, ...backoff });
    this.#recovery = new RecoveryDelay({ api: options.api, random, sleep });
    this.#bucket = new TokenBucket({ ratePerSecond, burst, now: monotonicNow, sleep });
    this.#refused = new RefusedStatuses({
      delayAfter: this.#delayAfter,
      retry: (id) => this.#enqueue(id),
    });
  }

  put(status: ObjectStatus, { isEdit }: StatusPutOptions = { isEdit: false }): void {
    this.#wanted.set(status.id, status);
    // A replica that becomes the leader checks all of them.
    if (!this.#options.leadership.isLeader()) return;
    // Nothing is collected for the last status of an edit.
    const isLast = isEdit && status.programmed.reason !== 'Pending';
    this.#enqueue(status.id, { isEdit, delayMs: isLast ? 0 : this.#options.debounceMs });
  }

  forget(id: string): void {
    this.#wanted.delete(id);
    this.#queue.delete(id);
    this.#refused.remove(id);
  }

  start(): void {
    const { leadership, recheckMs = 300_000 } = this.#options;
    this.#stopListening = leadership.onChange(() => this.#enqueueAll());
    this.#recheck = setInterval(() => this.#enqueueAll(), recheckMs).unref();
    this.#running ??= this.#run();
    this.#enqueueAll();
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    this.#stopListening();
    clearInterval(this.#recheck);
    this.#refused.close();
    this.#wake.resolve();
    await this.#running;
  }

  #enqueue(id: string, { isEdit = false, delayMs = 0 } = {}): void {
    this.#queue.add(id, { isEdit, dueMs: monotonicNow() + delayMs });
    this.#wake.resolve();
  }

  #enqueueAll(): void {
    if (!this.#options.leadership.isLeader()) return;
    // The CRD may have been upgraded.
    this.#lacksLastValid = false;
    for (const id of this.#wanted.keys()) this.#enqueue(id);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#awaitDue();
      await this.#writeDue();
    }
  }

  /** Returns when a status is due, or the queue has changed. */
  async #awaitDue(): Promise<void> {
    const { signal } = this.#closing;
    if (this.#outages > 0) {
      const [delayMs, error] = [this.#delayAfter(this.#outages), this.#outageError];
      await this.#recovery.wait(delayMs, { error, signal }).catch(() => undefined);
      return;
    }
    const dueMs = this.#queue.nextDueMs();
    if (dueMs === undefined) await this.#wake.promise;
    else {
      const waiting = new AbortController();
      const early = AbortSignal.any([signal, waiting.signal]);
      const delayMs = Math.max(0, dueMs - monotonicNow());
      await Promise.race([
        this.#sleep(delayMs, { signal: early }).catch(() => undefined),
        this.#wake.promise,
      ]);
      waiting.abort();
    }
    this.#wake = Promise.withResolvers();
  }

  async #writeDue(): Promise<void> {
    const { leadership, concurrency = 4 } = this.#options;
    let isAway = false;
    let count = 0;
    const work = async (): Promise<void> => {
      for (;;) {
        // Once the API server is unreachable, the rest waits with what has failed.
        if (this.#closing.signal.aborted || isAway) return;
        const next = this.#queue.take(monotonicNow());
        if (next === undefined) return;
        // A new leader checks all.
        if (!leadership.isLeader()) continue;
        count += 1;
        if (count % idsPerTurn === 0) await nextTurn();
        if (await this.#tryWrite(next)) continue;
        isAway = true;
        this.#enqueue(next.id, next);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    if (isAway) this.#outages += 1;
    else {
      this.#outages = 0;
      this.#outageReason = undefined;
      this.#recovery.reset();
    }
    // A privilege that was granted and is revoked again is logged again.
    if (!this.#refused.schedule()) this.#loggedReasons.clear();
  }

  /** False when the API server was unreachable. */
  async #tryWrite(next: QueuedWrite): Promise<boolean> {
    const { id } = next;
    try {
      await this.#write(next);
      this.#refused.remove(id);
      return true;
    } catch (error) {
      return this.#closing.signal.aborted || this.#handleFailure(error, id);
    }
  }

  async #write({ id, isEdit }: QueuedWrite): Promise<void> {
    const status = this.#wanted.get(id);
    const object = this.#options.objects.get(id);
    // Deleted, or created again under the same name: then the new status follows.
    if (status === undefined || object?.uid !== status.uid) return;
    const retry = () => this.#enqueue(id, { isEdit, delayMs: conflictDelayMs });
    if (this.#outdated.has(object)) {
      retry();
      return;
    }
    const current = this.#written.get(object) ?? readLiveStatus(object.manifest);
    const manifest = this.#toManifest(status, current.status);
    if (hasStatusManifest(current.status, manifest)) return;
    await this.#bucket.take(this.#closing.signal);
    if (!this.#options.leadership.isLeader()) return;
    const { trace, metrics } = this.#context;
    const send = async (): Promise<void> => {
      const applied = await this.#apply(object, current.resourceVersion, manifest);
      this.#written.set(object, readLiveStatus(applied));
    };
    try {
      const attributes = { 'k8s.namespace.name': object.namespace, 'tollgate.xds.object': object.name };
      await (trace === undefined ? send() : trace.write(status, attributes, send));
      metrics.statusWrites.inc({ result: 'written' });
    } catch (error) {
      if (isMissingField(error)) {
        this.#handleMissingField();
        retry();
        return;
      }
      if (!hasStatus(error, 409)) throw error;
      metrics.statusWrites.inc({ result: 'conflict' });
      this.#outdated.add(object);
      retry();
    }
  }

  /** Without what the CRD does not have: the API server would refuse the whole status. */
  #toManifest(status: ObjectStatus, current: unknown): StatusManifest {
    const { lastValid, ...manifest } = toStatusManifest(status, current, this.#context.nowMs());
    return lastValid === undefined || this.#lacksLastValid ? manifest : { ...manifest, lastValid };
  }

  /** Warns once. The field is tried again at the next check, because the CRD may be upgraded. */
  #handleMissingField(): void {
    this.#lacksLastValid = true;
    if (this.#hasWarnedOfCrd) return;
    this.#hasWarnedOfCrd = true;
    const reason =
      'the CRD has no status.lastValid: kubectl apply --server-side -f crds/ratelimitconfigs.yaml';
    this.#context.logger.warn({ reason }, 'last valid versions are not stored');
  }

  #apply(
    { namespace, name }: ConfigObject,
    resourceVersion: string,
    status: StatusManifest,
  ): Promise<unknown> {
    return this.#options.api.send({
      method: 'PATCH',
      path: `${objectPath(rateLimitConfigs, { namespace, name })}/status`,
      // Forced: a status taken over by another manager would be wrong from then on.
      query: { fieldManager, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: {
        apiVersion: rateLimitConfigs.apiVersion,
        kind: rateLimitConfigs.kind,
        // The version makes the API server refuse (409) when the object has changed or was created
        // again. It ignores the uid when a status is applied.
        metadata: { namespace, name, resourceVersion },
        status,
      },
      timeoutMs: writeTimeoutMs,
      signal: this.#closing.signal,
    });
  }

  /** False when the API server was unreachable. Counts and logs the failure. */
  #handleFailure(error: unknown, id: string): boolean {
    const { metrics, logger } = this.#context;
    if (hasStatus(error, 404)) {
      metrics.statusWrites.inc({ result: 'gone' });
      this.#refused.remove(id);
      logger.debug({ id, reason: error.message }, 'object deleted before its status was written');
      return true;
    }
    const isRefused = error instanceof ApiError && error.status < 500 && error.status !== 429;
    metrics.statusWrites.inc({ result: isRefused ? 'refused' : 'failed' });
    const { namespace = '' } = this.#options.objects.get(id) ?? {};
    const attempt = { verb: 'patch', resource: rateLimitConfigs, subresource: 'status', namespace };
    const reason = describeApiError(error, attempt);
    if (isRefused) this.#handleRefusal(id, reason);
    else {
      if (reason !== this.#outageReason) logger.warn({ reason }, 'cannot write statuses, retrying');
      this.#outageReason = reason;
      this.#outageError = error;
    }
    return isRefused;
  }

  /** A missing privilege affects many objects: each reason is logged once. */
  #handleRefusal(id: string, reason: string): void {
    this.#refused.add(id);
    if (this.#loggedReasons.has(reason)) return;
    if (this.#loggedReasons.size === maxReasons) this.#loggedReasons.clear();
    this.#loggedReasons.add(reason);
    const retryWithinMs = this.#backoff.maxMs;
    this.#context.logger.warn({ id, reason, retryWithinMs }, 'API server refused a status, retrying');
  }
}

/** Server-side apply refuses fields that the schema does not declare. */
function isMissingField(error: unknown): boolean {
  return error instanceof ApiError && /lastValid: field not declared in schema/.test(error.message);
}

function readLiveStatus(value: unknown): LiveStatus {
  const manifest = requireRecord(value, 'object');
  const { resourceVersion } = requireRecord(manifest.metadata, 'metadata');
  return { status: manifest.status, resourceVersion: String(resourceVersion) };
}
