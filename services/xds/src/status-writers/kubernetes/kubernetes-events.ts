import { createHash } from 'node:crypto';
import type { Logger } from '@tollgate/kit/logger';
import { createRecentlyUsed } from '@tollgate/kit/recently-used';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import { eventOf, type ObjectEvent } from '../../domain/object-event.ts';
import type { ObjectStatus } from '../../domain/object-status.ts';
import type { ApiClient } from '../../kubernetes/api-client.ts';
import { hasStatus } from '../../kubernetes/api-error.ts';
import { explainApiError } from '../../kubernetes/explain-api-error.ts';
import {
  apiVersionOf,
  collectionPath,
  events,
  type ObjectName,
  rateLimitConfigs,
} from '../../kubernetes/kube-resource.ts';
import type { Leadership } from '../../kubernetes/leadership.ts';
import { microTime } from '../../kubernetes/lease-record.ts';
import { createTokenBucket } from '../../kubernetes/token-bucket.ts';
import type { StatusWriter } from '../../ports/status-writer.ts';

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
 * Makes the writer of Kubernetes Events for what owners of objects have to act upon. Only the leader writes. The name of an
 * event follows from what it says, so that it is written once, also by another leader. Events are best effort: the status
 * has the same text.
 */
export function createKubernetesEvents(deps: KubernetesEventsDeps): StatusWriter {
  const { api, leadership, logger, nowMs, perSecond = defaultPerSecond, burst = defaultBurst } = deps;
  const bucket = createTokenBucket(
    { ratePerSecond: perSecond, burst },
    { now: monotonicNow, sleep: sleepFor },
  );
  const closing = new AbortController();
  /** By id, of every object that there is something to tell about: a new leader looks at all of them. */
  const present = new Map<string, ObjectEvent>();
  const waiting = new Map<string, ObjectEvent>();
  const written = createRecentlyUsed<true>({ capacity: maxRemembered });
  let wake = Promise.withResolvers<void>();
  let running: Promise<void> | undefined;
  let lastProblem: string | undefined;
  let stopListening: () => void = () => undefined;

  function enqueue(id: string, event: ObjectEvent): void {
    if (!leadership.isLeader() || written.get(event.key)) return;
    if (!waiting.has(id) && waiting.size >= maxWaiting) return;
    waiting.set(id, event);
    wake.resolve();
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      await wake.promise;
      wake = Promise.withResolvers();
      for (const id of waiting.keys()) {
        await bucket.take(closing.signal).catch(() => undefined);
        // The latest of the object, which may have been settled meanwhile.
        const event = waiting.get(id);
        waiting.delete(id);
        if (closing.signal.aborted || !leadership.isLeader()) break;
        if (event !== undefined) await tryWrite(id, event);
      }
    }
  }

  async function tryWrite(id: string, event: ObjectEvent): Promise<void> {
    const [namespace = '', name = ''] = id.split('/');
    try {
      await write({ namespace, name }, event);
      written.set(event.key, true);
      lastProblem = undefined;
    } catch (error) {
      if (closing.signal.aborted) return;
      // Written before: by another leader, or by a former life of this one.
      if (hasStatus(error, 409)) written.set(event.key, true);
      // The namespace is gone.
      else if (!hasStatus(error, 404)) report(error, namespace);
    }
  }

  async function write(
    { namespace, name }: ObjectName,
    { action, reason, note, key }: ObjectEvent,
  ): Promise<void> {
    const hash = createHash('sha256').update(key).digest('hex').slice(0, 16);
    const [uid] = key.split('\n');
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
        regarding: {
          apiVersion: apiVersionOf(rateLimitConfigs),
          kind: rateLimitConfigs.kind,
          namespace,
          name,
          uid,
        },
        reportingController: 'ratelimit.tollgate.dev/xds',
        reportingInstance: deps.instance.slice(0, maxInstance),
      },
      timeoutMs,
      signal: closing.signal,
    });
  }

  function report(error: unknown, namespace: string): void {
    const advice = explainApiError(error, { verb: 'create', resource: events, namespace });
    const reason = advice ?? (error instanceof Error ? error.message : String(error));
    if (reason !== lastProblem) logger.warn({ reason }, 'event not written');
    lastProblem = reason;
  }

  return {
    put(status: ObjectStatus) {
      const event = eventOf(status);
      waiting.delete(status.id);
      if (event === undefined) {
        present.delete(status.id);
        return;
      }
      present.set(status.id, event);
      enqueue(status.id, event);
    },
    forget(id) {
      present.delete(id);
      waiting.delete(id);
    },
    async start() {
      stopListening = leadership.onChange(() => {
        for (const [id, event] of present) enqueue(id, event);
      });
      running ??= run();
    },
    async close() {
      closing.abort(new Error('closed'));
      stopListening();
      wake.resolve();
      await running;
    },
  };
}

/** The beginning of a text that has no more bytes than this as UTF-8, with an ellipsis where something is left out. */
function cutBytes(text: string, most: number): string {
  if (Buffer.byteLength(text) <= most) return text;
  const ellipsis = '…';
  const bytes = Buffer.from(text).subarray(0, most - Buffer.byteLength(ellipsis));
  // What is left of a character that was cut is not decoded.
  return `${new TextDecoder('utf-8').decode(bytes, { stream: true })}${ellipsis}`;
}
