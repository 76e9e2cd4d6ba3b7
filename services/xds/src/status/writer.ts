import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import { type ApiClient, createTokenBucket } from '../kube/client.ts';
import { ApiError, explainApiError, hasStatus } from '../kube/errors.ts';
import type { Leadership } from '../kube/lease.ts';
import { apiVersionOf, objectPath, rateLimitConfigs, requireRecord } from '../kube/objects.ts';
import type { XdsMetrics } from '../metrics.ts';
import type { ConfigObject } from '../sources/source.ts';
import type { PipelineTrace } from '../tracing.ts';
import type { ObjectStatus } from './conditions.ts';
import {
  createRefusedStatuses,
  hasStatusManifest,
  type StatusManifest,
  toStatusManifest,
} from './manifest.ts';

/** Who reports back to the objects. */
export interface StatusWriter {
  /** Takes note of what the status of an object is to be; written later, and only if it differs from what is there. */
  put(status: ObjectStatus): void;
  /** The object is gone: there is nothing to write any more. */
  forget(id: string): void;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** How statuses are written. */
export interface KubernetesStatusWriterOptions {
  /** How long changes are collected before they are written together. */
  readonly debounceMs: number;
  /** Writes a second, once `burst` is used up. Default 50: 10,000 objects take three minutes, and the API server notices little. */
  readonly writesPerSecond?: number;
  /** Default 100. */
  readonly burst?: number;
  /** Writes at the same time. Default 4. */
  readonly concurrency?: number;
  /** All statuses are compared with those of the objects that often, in case somebody else has changed one. Default 300000. */
  readonly recheckMs?: number;
  /** Waiting times while the API server is away or refuses a status; half a second at first, 30 s at most, with full jitter, unless told otherwise. */
  readonly backoff?: BackoffOptions;
}

/** What the writer needs. */
export interface KubernetesStatusWriterDeps {
  readonly api: ApiClient;
  /** Objects as the source last told of them: nothing is written that they have already. */
  readonly objects: { get(id: string): ConfigObject | undefined };
  readonly leadership: Leadership;
  readonly logger: Logger;
  readonly metrics: Pick<XdsMetrics, 'statusWrites'>;
  /** Undefined when nothing is traced. */
  readonly trace?: PipelineTrace | undefined;
  /** Unix time in milliseconds; the system's when absent. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Who owns the fields of the status, for server-side apply. */
const fieldManager = 'tollgate-xds';

/** With the deadline of the lease less than its duration: what the former leader began has ended when the next one begins. */
const writeTimeoutMs = 5_000;

/** 10,000 statuses that need no writing take 70 ms to look at: others have their turn in between. */
const idsPerTurn = 500;

/** Rounds come no faster than this, however short the debounce time: an object may wait for news of it for a while. */
const minRoundMs = 10;

/** Reasons that are remembered as told: one for each namespace without the right, and a few that name an object. */
const maxRefusals = 100;

const defaultBackoff: BackoffOptions = { initialMs: 500, maxMs: 30_000, jitter: 1 };

/**
 * Makes the writer that reports to the status subresource by server-side apply. Only the leader writes, and only what
 * differs from what the object has; of several changes of one object the latest is written.
 *
 * Each write comes back as a MODIFIED event, with the generation unchanged: what is derived from the spec need not be
 * derived again, and the same status put again is not written again.
 */
export function createKubernetesStatusWriter(
  options: KubernetesStatusWriterOptions,
  deps: KubernetesStatusWriterDeps,
): StatusWriter {
  const { debounceMs, writesPerSecond = 50, burst = 100, concurrency = 4, recheckMs = 300_000 } = options;
  const { api, objects, leadership, logger, metrics, trace } = deps;
  const { now = Date.now, random = Math.random, sleep = sleepFor } = deps;
  const { backoff = defaultBackoff } = options;
  const delayAfter = backoffDelays({ random, ...backoff });
  const bucket = createTokenBucket({ ratePerSecond: writesPerSecond, burst }, { now: monotonicNow, sleep });
  const closing = new AbortController();
  const wanted = new Map<string, ObjectStatus>();
  /** What the API server has answered about an object that the source has not told of since. */
  const written = new WeakMap<ConfigObject, LiveStatus>();
  /** Objects that the API server has a newer version of, of which the source will tell. */
  const outdated = new WeakSet<ConfigObject>();
  let due = new Set<string>();
  let wake = Promise.withResolvers<void>();
  let running: Promise<void> | undefined;
  let recheck: NodeJS.Timeout | undefined;
  let stopListening: () => void = () => undefined;
  /** Rounds in a row in which the API server was away. */
  let outages = 0;
  /** Why the API server was away last; told once for each reason. */
  let outageReason: string | undefined;
  const refusals = new Set<string>();
  const refused = createRefusedStatuses({ delayAfter, retry: enqueue });

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      await wake.promise;
      wake = Promise.withResolvers();
      const waitMs = Math.max(debounceMs, minRoundMs, outages === 0 ? 0 : delayAfter(outages));
      await sleep(waitMs, { signal: closing.signal }).catch(() => undefined);
      await writeDue();
    }
  }

  async function writeDue(): Promise<void> {
    const round = due;
    due = new Set();
    const ids = round.values();
    let away = false;
    let looked = 0;
    const worker = async (): Promise<void> => {
      // One iterator for all workers: each id goes to one of them, and a worker that leaves does not end it.
      for (const id of ids) {
        if (closing.signal.aborted || !leadership.isLeader()) return;
        looked += 1;
        if (looked % idsPerTurn === 0) await nextTurn();
        // Once the server is away, the rest of the round waits with what has failed.
        if (away || !(await tryWrite(id))) {
          away = true;
          due.add(id);
        }
      }
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
    outages = away ? outages + 1 : 0;
    if (!away) outageReason = undefined;
    // What was given back may be taken away again, and is news then.
    if (!refused.schedule()) refusals.clear();
    if (due.size > 0) wake.resolve();
  }

  /** Answers whether the API server has decided, one way or the other. */
  async function tryWrite(id: string): Promise<boolean> {
    try {
      await write(id);
      refused.settle(id);
      return true;
    } catch (error) {
      if (closing.signal.aborted) return true;
      return decided(error, id);
    }
  }

  async function write(id: string): Promise<void> {
    const status = wanted.get(id);
    const object = objects.get(id);
    // Gone, or another life of that name, whose status is still to come.
    if (status === undefined || object?.uid !== status.uid) return;
    if (outdated.has(object)) {
      due.add(id);
      return;
    }
    const current = written.get(object) ?? liveStatus(object.manifest);
    const manifest = toStatusManifest(status, current.status, now());
    if (hasStatusManifest(current.status, manifest)) return;
    await bucket.take(closing.signal);
    if (!leadership.isLeader()) return;
    const send = async (): Promise<void> => {
      written.set(object, liveStatus(await apply(object, current.resourceVersion, manifest)));
    };
    try {
      const { namespace, name } = object;
      const attributes = { 'k8s.namespace.name': namespace, 'tollgate.xds.object': name };
      await (trace === undefined ? send() : trace.write(status, attributes, send));
      metrics.statusWrites.inc({ result: 'written' });
    } catch (error) {
      if (!hasStatus(error, 409)) throw error;
      metrics.statusWrites.inc({ result: 'conflict' });
      outdated.add(object);
      due.add(id);
    }
  }

  function apply(
    { namespace, name }: ConfigObject,
    resourceVersion: string,
    status: StatusManifest,
  ): Promise<unknown> {
    return api.send({
      method: 'PATCH',
      path: `${objectPath(rateLimitConfigs, { namespace, name })}/status`,
      // Forced: a status that somebody else has taken over would be a lie from then on.
      query: { fieldManager, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: {
        apiVersion: apiVersionOf(rateLimitConfigs),
        kind: rateLimitConfigs.kind,
        // The version makes the API server refuse (409) when the object is another one by now. The uid would not: where
        // a status is applied the API server does not look at it.
        metadata: { namespace, name, resourceVersion },
        status,
      },
      timeoutMs: writeTimeoutMs,
      signal: closing.signal,
    });
  }

  /** Whether another attempt right away would be in vain. Counts and logs what has happened. */
  function decided(error: unknown, id: string): boolean {
    if (hasStatus(error, 404)) {
      metrics.statusWrites.inc({ result: 'gone' });
      refused.settle(id);
      logger.debug({ id, reason: error.message }, 'no status written: the object is gone');
      return true;
    }
    const isRefused = error instanceof ApiError && error.status < 500 && error.status !== 429;
    metrics.statusWrites.inc({ result: isRefused ? 'refused' : 'failed' });
    const { namespace = '' } = objects.get(id) ?? {};
    const attempt = { verb: 'patch', resource: rateLimitConfigs, subresource: 'status', namespace };
    const reason =
      explainApiError(error, attempt) ?? (error instanceof Error ? error.message : String(error));
    if (isRefused) reportRefusal(id, reason);
    else reportOutage(reason);
    return isRefused;
  }

  /** A right that is missing is missing for every object: each reason is told once. */
  function reportRefusal(id: string, reason: string): void {
    refused.add(id);
    if (refusals.has(reason)) return;
    if (refusals.size === maxRefusals) refusals.clear();
    refusals.add(reason);
    logger.warn(
      { id, reason, retryWithinMs: backoff.maxMs },
      'the API server refuses a status; trying again',
    );
  }

  function reportOutage(reason: string): void {
    if (reason !== outageReason) logger.warn({ reason }, 'statuses cannot be written; trying again');
    outageReason = reason;
  }

  function enqueue(id: string): void {
    due.add(id);
    wake.resolve();
  }

  function enqueueAll(): void {
    if (!leadership.isLeader()) return;
    for (const id of wanted.keys()) enqueue(id);
  }

  return {
    put(status) {
      wanted.set(status.id, status);
      // A replica that becomes the leader looks at all of them.
      if (leadership.isLeader()) enqueue(status.id);
    },
    forget(id) {
      wanted.delete(id);
      due.delete(id);
      refused.settle(id);
    },
    async start() {
      stopListening = leadership.onChange(enqueueAll);
      recheck = setInterval(enqueueAll, recheckMs).unref();
      running ??= run();
      enqueueAll();
    },
    async close() {
      closing.abort(new Error('closed'));
      stopListening();
      clearInterval(recheck);
      refused.close();
      wake.resolve();
      await running;
    },
  };
}

/** A status, and the version of the object that has it. */
interface LiveStatus {
  readonly status: unknown;
  readonly resourceVersion: string;
}

function liveStatus(value: unknown): LiveStatus {
  const manifest = requireRecord(value, 'an object');
  const { resourceVersion } = requireRecord(manifest.metadata, 'metadata');
  return { status: manifest.status, resourceVersion: String(resourceVersion) };
}
