import { backoffDelays } from '@tollgate/kit/backoff';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { Context } from '../context.ts';
import { type ApiClient, apiBackoff, objectPath, TokenBucket } from '../kube/client.ts';
import { describeApiError, hasStatus } from '../kube/errors.ts';
import type { Leadership } from '../kube/lease.ts';
import type { KubeObject } from '../kube/reflector.ts';
import { accessPolicies } from '../kube/resources.ts';
import type { PolicyObserver } from './policy-reporter.ts';
import {
  hasPolicyStatus,
  type PolicyObservation,
  type PolicyStatus,
  toPolicyStatus,
} from './policy-status.ts';
import { WriteQueue } from './write-queue.ts';

interface PolicyStatusWriterOptions {
  readonly api: ApiClient;
  /** The source: a status that its object has already is not written. */
  readonly objects: { get(id: string): KubeObject | undefined };
  readonly leadership: Leadership;
  /** Changes are collected for this time. */
  readonly debounceMs: number;
}

/** Owner of the fields in server-side apply. */
const fieldManager = 'tollgate-xds';

/** Shorter than lease duration minus renew deadline: writes of two leaders do not overlap. */
const writeTimeoutMs = 5_000;

/** Delay after a conflict: the source has to deliver the new version of the object. */
const conflictDelayMs = 50;

/**
 * Writes the status of AccessPolicies, with the last valid version, by server-side apply. Only the
 * leader writes, one after the other, and only what differs.
 */
export class PolicyStatusWriter implements PolicyObserver {
  readonly #context: Context;
  readonly #options: PolicyStatusWriterOptions;
  readonly #wanted = new Map<string, PolicyObservation>();
  readonly #bucket = new TokenBucket({ ratePerSecond: 50, burst: 100, now: monotonicNow, sleep: sleepFor });
  readonly #queue = new WriteQueue();
  readonly #closing = new AbortController();
  readonly #delayAfter = backoffDelays({ random: Math.random, ...apiBackoff });
  #failures = 0;
  #loggedReason: string | undefined;
  #wake = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #stopListening: () => void = () => undefined;

  constructor(context: Context, options: PolicyStatusWriterOptions) {
    this.#context = context;
    this.#options = options;
  }

  put(observation: PolicyObservation): void {
    const { id } = observation.result;
    this.#wanted.set(id, observation);
    // A replica that becomes the leader checks all of them.
    if (this.#options.leadership.isLeader()) this.#enqueue(id, this.#options.debounceMs);
  }

  forget(id: string): void {
    this.#wanted.delete(id);
    this.#queue.delete(id);
  }

  start(): void {
    const { leadership } = this.#options;
    const enqueueAll = () => {
      if (leadership.isLeader()) for (const id of this.#wanted.keys()) this.#enqueue(id);
    };
    this.#stopListening = leadership.onChange(enqueueAll);
    this.#running ??= this.#run();
    enqueueAll();
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    this.#stopListening();
    this.#wake.resolve();
    await this.#running;
  }

  #enqueue(id: string, delayMs = 0): void {
    this.#queue.add(id, { isEdit: true, dueMs: monotonicNow() + delayMs });
    this.#wake.resolve();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const next = this.#queue.take(monotonicNow());
      if (next === undefined) await this.#awaitDue();
      else await this.#write(next.id).catch((error: unknown) => this.#handleFailure(error, next.id));
    }
  }

  /** Returns when a status is due, or the queue has changed. */
  async #awaitDue(): Promise<void> {
    const dueMs = this.#queue.nextDueMs();
    const waiting = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, waiting.signal]);
    const due =
      dueMs === undefined
        ? []
        : [sleepFor(Math.max(1, dueMs - monotonicNow()), { signal }).catch(() => undefined)];
    await Promise.race([this.#wake.promise, ...due]);
    waiting.abort();
    this.#wake = Promise.withResolvers();
  }

  async #write(id: string): Promise<void> {
    const observation = this.#wanted.get(id);
    const object = this.#options.objects.get(id);
    // After a change, a new result follows.
    if (observation === undefined || object?.generation !== observation.result.generation) return;
    const { manifest } = object;
    const wanted = toPolicyStatus(observation, manifest, this.#context.nowMs());
    if (hasPolicyStatus(manifest.status, wanted) || !this.#options.leadership.isLeader()) return;
    await this.#bucket.take(this.#closing.signal);
    await this.#apply(object, wanted);
    this.#context.metrics.statusWrites.inc({ result: 'written' });
    this.#failures = 0;
    this.#loggedReason = undefined;
  }

  #apply({ namespace, name, resourceVersion }: KubeObject, status: PolicyStatus): Promise<unknown> {
    const { apiVersion, kind } = accessPolicies;
    return this.#options.api.send({
      method: 'PATCH',
      path: `${objectPath(accessPolicies, { namespace, name })}/status`,
      // Forced: a status taken over by another manager would be wrong from then on.
      query: { fieldManager, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      // The version makes the API server refuse (409) when the object has changed.
      body: { apiVersion, kind, metadata: { namespace, name, resourceVersion }, status },
      timeoutMs: writeTimeoutMs,
      signal: this.#closing.signal,
    });
  }

  #handleFailure(error: unknown, id: string): void {
    if (this.#closing.signal.aborted) return;
    const { metrics, logger } = this.#context;
    if (hasStatus(error, 404)) {
      metrics.statusWrites.inc({ result: 'gone' });
      return;
    }
    if (hasStatus(error, 409)) {
      metrics.statusWrites.inc({ result: 'conflict' });
      this.#enqueue(id, conflictDelayMs);
      return;
    }
    metrics.statusWrites.inc({ result: 'failed' });
    this.#failures += 1;
    this.#enqueue(id, this.#delayAfter(this.#failures));
    const { namespace = '' } = this.#options.objects.get(id) ?? {};
    const attempt = { verb: 'patch', resource: accessPolicies, subresource: 'status', namespace };
    const reason = describeApiError(error, attempt);
    if (reason !== this.#loggedReason) logger.warn({ reason }, 'cannot write statuses of policies, retrying');
    this.#loggedReason = reason;
  }
}
