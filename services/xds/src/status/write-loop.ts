import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { Context } from '../context.ts';
import { type ApiClient, apiBackoff } from '../kube/client.ts';
import { ApiError, describeApiError, hasStatus } from '../kube/errors.ts';
import type { Leadership } from '../kube/lease.ts';
import { RecoveryDelay } from '../kube/recovery.ts';
import type { KubeResource } from '../kube/resources.ts';
import { type QueuedWrite, RefusedStatuses, WriteQueue } from './write-queue.ts';

export interface WriteTiming {
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

interface WriteLoopOptions extends WriteTiming {
  readonly api: ApiClient;
  readonly leadership: Leadership;
  /** The kind of the objects, for messages. */
  readonly resource: KubeResource;
  /** Ids of all objects, for a replica that becomes the leader, and for the recheck. */
  readonly all: () => Iterable<string>;
  /** Writes a status that differs. Rejects when the API server refuses it or does not answer. */
  readonly write: (next: QueuedWrite) => Promise<void>;
}

/** Comparing 10,000 statuses takes 70 ms: other work runs in between. */
const idsPerTurn = 500;

/** Remembered reasons of refusals: about one per namespace without the privilege. */
const maxReasons = 100;

/**
 * Writes statuses when they are due, while this replica is the leader. What the API server refuses
 * is retried, one object of a namespace at a time; while the API server is unreachable, everything
 * waits.
 */
export class WriteLoop {
  readonly #context: Context;
  readonly #options: WriteLoopOptions;
  readonly #backoff: BackoffOptions;
  readonly #delayAfter: (failures: number) => number;
  readonly #sleep: NonNullable<WriteTiming['sleep']>;
  readonly #recovery: RecoveryDelay;
  readonly #closing = new AbortController();
  readonly #refused: RefusedStatuses;
  readonly #loggedReasons = new Set<string>();
  readonly #queue = new WriteQueue();
  #wake = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #recheck: NodeJS.Timeout | undefined;
  #stopListening: () => void = () => undefined;
  /** Rounds in a row in which the API server was unreachable, and the last error. */
  #outages = 0;
  #outageError: unknown;
  #outageReason: string | undefined;

  constructor(context: Context, options: WriteLoopOptions) {
    const { api, backoff = apiBackoff, random = Math.random, sleep = sleepFor } = options;
    this.#context = context;
    this.#options = options;
    this.#backoff = backoff;
    this.#sleep = sleep;
    this.#delayAfter = backoffDelays({ random, ...backoff });
    this.#recovery = new RecoveryDelay({ api, random, sleep });
    this.#refused = new RefusedStatuses({
      delayAfter: this.#delayAfter,
      retry: (id) => this.enqueue(id),
    });
  }

  /** Aborted by `close`. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  enqueue(id: string, { isEdit = false, delayMs = 0 } = {}): void {
    this.#queue.add(id, { isEdit, dueMs: monotonicNow() + delayMs });
    this.#wake.resolve();
  }

  forget(id: string): void {
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

  #enqueueAll(): void {
    if (!this.#options.leadership.isLeader()) return;
    for (const id of this.#options.all()) this.enqueue(id);
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
        this.enqueue(next.id, next);
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
      await this.#options.write(next);
      this.#refused.remove(id);
      return true;
    } catch (error) {
      return this.#closing.signal.aborted || this.#handleFailure(error, id);
    }
  }

  /** False when the API server was unreachable. Counts and logs the failure. */
  #handleFailure(error: unknown, id: string): boolean {
    const { metrics, logger } = this.#context;
    const { resource } = this.#options;
    const { kind } = resource;
    if (hasStatus(error, 404)) {
      metrics.statusWrites.inc({ result: 'gone' });
      this.#refused.remove(id);
      logger.debug({ kind, id, reason: error.message }, 'object deleted before its status was written');
      return true;
    }
    const isRefused = error instanceof ApiError && error.status < 500 && error.status !== 429;
    metrics.statusWrites.inc({ result: isRefused ? 'refused' : 'failed' });
    const [namespace = ''] = id.split('/');
    const reason = describeApiError(error, { verb: 'patch', resource, subresource: 'status', namespace });
    if (isRefused) this.#handleRefusal(id, reason);
    else {
      if (reason !== this.#outageReason) logger.warn({ kind, reason }, 'cannot write statuses, retrying');
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
    const { kind } = this.#options.resource;
    const retryWithinMs = this.#backoff.maxMs;
    this.#context.logger.warn({ kind, id, reason, retryWithinMs }, 'API server refused a status, retrying');
  }
}
