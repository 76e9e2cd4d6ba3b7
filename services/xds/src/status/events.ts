import { createHash } from 'node:crypto';
import { RecentlyUsed } from '@tollgate/kit/collections';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import { type ApiClient, createTokenBucket, type TokenBucket } from '../kube/client.ts';
import { explainApiError, hasStatus } from '../kube/errors.ts';
import { type Leadership, microTime } from '../kube/lease.ts';
import { apiVersionOf, collectionPath, events, type ObjectName, rateLimitConfigs } from '../kube/objects.ts';
import type { ObjectStatus } from './conditions.ts';
import type { StatusWriter } from './writer.ts';

/** Something that an object's owner has to act upon. */
export interface ObjectEvent {
  /** Of the object. */
  readonly uid: string;
  readonly action: 'Accept' | 'Program';
  /** As that of the condition. */
  readonly reason: string;
  readonly note: string;
  /** Equal for what is the same event, whichever replica reports it and when. */
  readonly key: string;
}

/** The event that a status calls for: a refusal, a conflict, a rejection by limiters. Undefined when there is none. */
export function eventOf({
  uid,
  observedGeneration,
  version,
  accepted,
  programmed,
}: ObjectStatus): ObjectEvent | undefined {
  if (accepted.status === 'False') {
    const { reason, message } = accepted;
    return {
      uid,
      action: 'Accept',
      reason,
      note: message,
      key: [uid, reason, observedGeneration, message].join('\n'),
    };
  }
  if (programmed.reason !== 'Nacked') return undefined;
  const { reason, message } = programmed;
  // One event for each version that is rejected: how many limiters reject it, and in which words, changes with each of them.
  return { uid, action: 'Program', reason, note: message, key: [uid, reason, version].join('\n') };
}

/** What is needed to write events. */
export interface KubernetesEventsDeps {
  readonly api: ApiClient;
  readonly leadership: Leadership;
  readonly logger: Logger;
  /** Name of this replica. */
  readonly instance: string;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Events a second, after the first of them. */
  readonly perSecond?: number;
  /** Events that are written at once. */
  readonly burst?: number;
}

/** A broken template makes an event for each object, and etcd keeps all of them for an hour. */
const defaultPerSecond = 5;
const defaultBurst = 50;

/** Events that wait; of each object the latest. More are left out: they are in the status of the objects. */
const maxWaiting = 1_000;

/** Events that are remembered as written. */
const maxRemembered = 10_000;

/** Of the API server, in bytes of a note and in characters of the other fields. */
const maxNoteBytes = 1024;
const maxInstance = 128;
const maxName = 253;

const timeoutMs = 5_000;

/**
 * Writes Kubernetes Events for what owners of objects have to act upon. Only the leader writes. The name of an event follows
 * from its content, so that it is written once, also by another leader. Events are best effort: the status has the same text.
 */
export class KubernetesEvents implements StatusWriter {
  readonly #deps: KubernetesEventsDeps;
  readonly #bucket: TokenBucket;
  readonly #closing = new AbortController();
  /** By id, of every object with something to act upon: a new leader looks at all of them. */
  readonly #present = new Map<string, ObjectEvent>();
  readonly #waiting = new Map<string, ObjectEvent>();
  readonly #written = new RecentlyUsed<true>({ capacity: maxRemembered });
  #wake = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #lastProblem: string | undefined;
  #stopListening: () => void = () => undefined;

  constructor(deps: KubernetesEventsDeps) {
    const { perSecond = defaultPerSecond, burst = defaultBurst } = deps;
    this.#deps = deps;
    this.#bucket = createTokenBucket(
      { ratePerSecond: perSecond, burst },
      { now: monotonicNow, sleep: sleepFor },
    );
  }

  put(status: ObjectStatus): void {
    const { id } = status;
    const event = eventOf(status);
    this.#waiting.delete(id);
    if (event === undefined) {
      this.#present.delete(id);
      return;
    }
    this.#present.set(id, event);
    this.#enqueue(id, event);
  }

  forget(id: string): void {
    this.#present.delete(id);
    this.#waiting.delete(id);
  }

  async start(): Promise<void> {
    this.#stopListening = this.#deps.leadership.onChange(() => {
      for (const [id, event] of this.#present) this.#enqueue(id, event);
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
    if (!this.#deps.leadership.isLeader() || this.#written.get(event.key)) return;
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
        // The latest of the object, which may have been settled meanwhile.
        const event = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (signal.aborted || !this.#deps.leadership.isLeader()) break;
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
      // Written before: by another leader, or by a former life of this one.
      if (hasStatus(error, 409)) this.#written.set(event.key, true);
      // The namespace is gone.
      else if (!hasStatus(error, 404)) this.#report(error, namespace);
    }
  }

  async #write(object: ObjectName, { uid, action, reason, note, key }: ObjectEvent): Promise<void> {
    const { api, nowMs, instance } = this.#deps;
    const { namespace, name } = object;
    const hash = createHash('sha256').update(key).digest('hex').slice(0, 16);
    const { kind } = rateLimitConfigs;
    await api.send({
      method: 'POST',
      path: collectionPath(events, namespace),
      body: {
        apiVersion: apiVersionOf(events),
        kind: events.kind,
        metadata: { namespace, name: `${name.slice(0, maxName - hash.length - 1)}.${hash}` },
        eventTime: microTime(nowMs()),
        type: 'Warning',
        reason,
        action,
        note: cutBytes(note, maxNoteBytes),
        regarding: { apiVersion: apiVersionOf(rateLimitConfigs), kind, namespace, name, uid },
        reportingController: 'ratelimit.tollgate.dev/xds',
        reportingInstance: instance.slice(0, maxInstance),
      },
      timeoutMs,
      signal: this.#closing.signal,
    });
  }

  #report(error: unknown, namespace: string): void {
    const advice = explainApiError(error, { verb: 'create', resource: events, namespace });
    const reason = advice ?? (error instanceof Error ? error.message : String(error));
    if (reason !== this.#lastProblem) this.#deps.logger.warn({ reason }, 'event not written');
    this.#lastProblem = reason;
  }
}

/** The beginning of a text that has no more bytes than this as UTF-8, with an ellipsis where something is left out. */
function cutBytes(text: string, most: number): string {
  if (Buffer.byteLength(text) <= most) return text;
  const ellipsis = '…';
  const bytes = Buffer.from(text).subarray(0, most - Buffer.byteLength(ellipsis));
  // What is left of a character that was cut is not decoded.
  return `${new TextDecoder('utf-8').decode(bytes, { stream: true })}${ellipsis}`;
}
