import { createHash } from 'node:crypto';
import { RecentlyUsed } from '@tollgate/kit/collections';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { Context } from '../context.ts';
import { type ApiClient, TokenBucket } from '../kube/client.ts';
import { describeApiError, hasStatus } from '../kube/errors.ts';
import { formatMicroTime, type Leadership } from '../kube/lease.ts';
import { events, type KubeResource, type ObjectName, rateLimitConfigs } from '../kube/resources.ts';
import type { ObjectStatus } from './object-status.ts';

/** Something that the owner of an object has to act upon. */
export interface ObjectEvent {
  /** UID of the object. */
  readonly uid: string;
  readonly action: 'Accept' | 'Program' | 'Enforce';
  /** The reason of the condition. */
  readonly reason: string;
  readonly note: string;
  /** Equal for the same event, whichever replica writes it and when. */
  readonly key: string;
}

/** Objects of one kind, by what is known of them. */
export interface EventKind<Status> {
  readonly resource: KubeResource;
  /** `namespace/name`. */
  readonly idOf: (status: Status) => string;
  /** Undefined for an object whose owner has nothing to do. */
  readonly toEvent: (status: Status) => ObjectEvent | undefined;
}

export const rateLimitConfigEvents: EventKind<ObjectStatus> = {
  resource: rateLimitConfigs,
  idOf: ({ id }) => id,
  toEvent,
};

/** The event for an object that is not accepted, or that limiters reject. */
export function toEvent(status: ObjectStatus): ObjectEvent | undefined {
  const { uid, observedGeneration, version, accepted, programmed } = status;
  if (accepted.status === 'False') {
    const { reason, message: note } = accepted;
    return { uid, action: 'Accept', reason, note, key: [uid, reason, observedGeneration, note].join('\n') };
  }
  if (programmed.reason !== 'Nacked') return undefined;
  const { reason, message: note } = programmed;
  // One event per rejected version, because the message changes with each limiter that rejects it.
  return { uid, action: 'Program', reason, note, key: [uid, reason, version].join('\n') };
}

export interface KubernetesEventsOptions<Status> {
  readonly kind: EventKind<Status>;
  readonly api: ApiClient;
  readonly leadership: Leadership;
  /** Name of this replica. */
  readonly instance: string;
  /** Rate after the burst. Default 5: a broken template causes an event per object. */
  readonly perSecond?: number;
  /** Default 50. */
  readonly burst?: number;
}

/** Waiting events, one per object. Excess events are dropped: the statuses have the same text. */
const maxWaiting = 1_000;

/** Written events that are remembered. */
const maxRemembered = 10_000;

/** Bounds of the API server. */
const maxNoteBytes = 1024;
const maxInstance = 128;
const maxName = 253;

const timeoutMs = 5_000;

/**
 * Writes Kubernetes Events for objects that need action. Only the leader writes. The name of an
 * event is a hash of its content, so that another leader does not write it again. Events are best
 * effort.
 */
export class KubernetesEvents<Status> {
  readonly problemsOnly = true;
  readonly #context: Context;
  readonly #options: KubernetesEventsOptions<Status>;
  readonly #bucket: TokenBucket;
  readonly #closing = new AbortController();
  /** Events by id, for a replica that becomes the leader. */
  readonly #current = new Map<string, ObjectEvent>();
  readonly #waiting = new Map<string, ObjectEvent>();
  readonly #written = new RecentlyUsed<true>({ capacity: maxRemembered });
  #wake = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #lastProblem: string | undefined;
  #stopListening: () => void = () => undefined;

  constructor(context: Context, options: KubernetesEventsOptions<Status>) {
    const { perSecond: ratePerSecond = 5, burst = 50 } = options;
    this.#context = context;
    this.#options = options;
    this.#bucket = new TokenBucket({ ratePerSecond, burst, now: monotonicNow, sleep: sleepFor });
  }

  put(status: Status): void {
    const { kind } = this.#options;
    const id = kind.idOf(status);
    const event = kind.toEvent(status);
    this.#waiting.delete(id);
    if (event === undefined) {
      this.#current.delete(id);
      return;
    }
    this.#current.set(id, event);
    this.#enqueue(id, event);
  }

  forget(id: string): void {
    this.#current.delete(id);
    this.#waiting.delete(id);
  }

  start(): void {
    this.#stopListening = this.#options.leadership.onChange(() => {
      for (const [id, event] of this.#current) this.#enqueue(id, event);
    });
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    this.#stopListening();
    this.#wake.resolve();
    await this.#running;
  }

  #enqueue(id: string, event: ObjectEvent): void {
    if (!this.#options.leadership.isLeader() || this.#written.get(event.key)) return;
    if (!this.#waiting.has(id) && this.#waiting.size >= maxWaiting) return;
    this.#waiting.set(id, event);
    this.#wake.resolve();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#wake.promise;
      this.#wake = Promise.withResolvers();
      for (const id of this.#waiting.keys()) {
        await this.#bucket.take(signal).catch(() => undefined);
        // It may have been replaced or resolved meanwhile.
        const event = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (signal.aborted || !this.#options.leadership.isLeader()) break;
        if (event !== undefined) await this.#tryWrite(id, event);
      }
    }
  }

  async #tryWrite(id: string, event: ObjectEvent): Promise<void> {
    const [namespace = '', name = ''] = id.split('/');
    try {
      await this.#write({ namespace, name }, event);
      this.#written.set(event.key, true);
      this.#lastProblem = undefined;
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      // Written before, by another leader or before a restart.
      if (hasStatus(error, 409)) this.#written.set(event.key, true);
      // 404: the namespace was deleted.
      else if (!hasStatus(error, 404)) this.#logProblem(error, namespace);
    }
  }

  async #write(object: ObjectName, { uid, action, reason, note, key }: ObjectEvent): Promise<void> {
    const { api, instance } = this.#options;
    const { resource } = this.#options.kind;
    const { namespace, name } = object;
    const hash = createHash('sha256').update(key).digest('hex').slice(0, 16);
    const { group, apiVersion, kind } = resource;
    await api.create(
      events,
      {
        metadata: { namespace, name: `${name.slice(0, maxName - hash.length - 1)}.${hash}` },
        eventTime: formatMicroTime(this.#context.nowMs()),
        type: 'Warning',
        reason,
        action,
        note: truncateBytes(note, maxNoteBytes),
        regarding: { apiVersion, kind, namespace, name, uid },
        reportingController: `${group}/xds`,
        reportingInstance: instance.slice(0, maxInstance),
      },
      { timeoutMs, signal: this.#closing.signal },
    );
  }

  #logProblem(error: unknown, namespace: string): void {
    const reason = describeApiError(error, { verb: 'create', resource: events, namespace });
    if (reason !== this.#lastProblem) this.#context.logger.warn({ reason }, 'cannot write event');
    this.#lastProblem = reason;
  }
}

/** Truncates to a number of bytes as UTF-8, with an ellipsis. */
function truncateBytes(text: string, most: number): string {
  if (Buffer.byteLength(text) <= most) return text;
  const ellipsis = '…';
  const bytes = Buffer.from(text).subarray(0, most - Buffer.byteLength(ellipsis));
  // With `stream`, an incomplete character at the end is dropped.
  return `${new TextDecoder('utf-8').decode(bytes, { stream: true })}${ellipsis}`;
}
