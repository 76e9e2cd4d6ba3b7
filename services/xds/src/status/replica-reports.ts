import { isDeepStrictEqual } from 'node:util';
import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { ApiClient } from '../kube/client.ts';
import { explainApiError, hasStatus } from '../kube/errors.ts';
import { type Leadership, replicaOf } from '../kube/lease.ts';
import { apiVersionOf, collectionPath, configMaps, type ObjectName, objectPath } from '../kube/objects.ts';
import { createReflector, type ReflectorEvent } from '../kube/reflector.ts';
import { formatLimiterReport, type LimiterReport, readLimiterReport } from './limiter-report.ts';
import type { LimiterReports, ReplicaReport } from './reported-limiters.ts';

/** What the keys of the ConfigMap say, and how long each of them has been silent. */
export interface ReportEntries {
  read(event: ReflectorEvent): void;
  /** Reports of other replicas that are not silent; undefined before anything was read. */
  counting(): readonly ReplicaReport[] | undefined;
  /** Keys of replicas that are gone. */
  expired(): readonly string[];
}

/** What it takes. */
export interface ReportEntriesDeps {
  /** A clock in milliseconds that does not go back. */
  readonly now: () => number;
  readonly logger: Logger;
}

/** Most replicas that are counted: more than anybody runs, and their keys fit into a ConfigMap. */
const maxEntries = 100;

interface Entry {
  readonly text: string;
  /** Undefined where it is none. */
  readonly report: LimiterReport | undefined;
  /** When the text was another one last; long ago for a former life of this replica. */
  readonly changedMs: number;
}

/**
 * Makes entries that have read nothing. Clocks of different machines are never compared: a replica is silent for as long
 * as its entry has not changed, measured here, and only while there was something to be heard. This replica's own sign of
 * life comes back by the same way; when that stays away, the others may have spoken as well.
 */
export function createReportEntries(
  { own, expiryMs }: { readonly own: string; readonly expiryMs: number },
  { now, logger }: ReportEntriesDeps,
): ReportEntries {
  let entries: Map<string, Entry> | undefined;
  let heardMs = now();
  let unreadable = new Set<string>();

  /** What was there first under the name of this replica is of a life that has ended, unless it speaks up. */
  function firstSeenMs(key: string, nowMs: number): number {
    const isFormer = entries === undefined && replicaOf(key) === replicaOf(own);
    return isFormer ? Number.NEGATIVE_INFINITY : nowMs;
  }

  function note(texts: ReadonlyMap<string, string>): void {
    const before = entries ?? new Map<string, Entry>();
    const nowMs = now();
    const wasDeaf = nowMs - heardMs > expiryMs / 2;
    heardMs = nowMs;
    entries = new Map(
      [...texts].map(([key, text]): [string, Entry] => {
        const known = before.get(key);
        if (known?.text === text) return [key, wasDeaf ? { ...known, changedMs: nowMs } : known];
        const changedMs = known === undefined ? firstSeenMs(key, nowMs) : nowMs;
        return [key, { text, report: readLimiterReport(text), changedMs }];
      }),
    );
    reportUnreadable(entries);
  }

  /** Once for each replica: its text is another one every few seconds. */
  function reportUnreadable(present: ReadonlyMap<string, Entry>): void {
    const keys = [...present].filter(([, { report }]) => report === undefined).map(([key]) => key);
    for (const key of keys) {
      if (!unreadable.has(key))
        logger.warn({ key }, 'what a replica tells of its limiters is not understood');
    }
    unreadable = new Set(keys);
  }

  const isSilent = ({ changedMs }: Entry): boolean => heardMs - changedMs >= expiryMs;

  return {
    read(event) {
      note(event.type === 'deleted' ? new Map() : textsOf(event, own));
    },
    counting() {
      if (entries === undefined) return undefined;
      return [...entries].flatMap(([identity, entry]) =>
        entry.report === undefined || isSilent(entry)
          ? []
          : { identity, replica: replicaOf(identity), report: entry.report },
      );
    },
    expired: () => [...(entries ?? [])].filter(([, entry]) => isSilent(entry)).map(([key]) => key),
  };
}

/** Texts of the other replicas. */
function textsOf(event: ReflectorEvent, own: string): ReadonlyMap<string, string> {
  const object = event.type === 'replaced' ? event.objects[0] : event.object;
  const data = object?.manifest.data;
  if (typeof data !== 'object' || data === null) return new Map();
  const texts = Object.entries(data).filter(([key, text]) => key !== own && typeof text === 'string');
  return new Map(texts.slice(0, maxEntries));
}

/** Where replicas meet, and how often they say something. */
export interface KubernetesLimiterReportsOptions extends ObjectName {
  /** Of this replica and this life of it: see `leaseIdentity`. */
  readonly identity: string;
  /** How long changes are collected before they are told. Default 500. */
  readonly debounceMs?: number;
  /** What has not changed is told again that often, as a sign of life. Default 10000. */
  readonly renewMs?: number;
  /** A replica that is silent for so long is gone. Default 30000. */
  readonly expiryMs?: number;
  /** Waiting times while the API server is away; half a second at first, 30 s at most, with full jitter, unless told otherwise. */
  readonly backoff?: BackoffOptions;
}

/** What is needed for it. */
export interface KubernetesLimiterReportsDeps {
  readonly api: ApiClient;
  /** The leader clears away what replicas that are gone have left. */
  readonly leadership: Leadership;
  readonly logger: Logger;
  /** A clock in milliseconds that does not go back; `performance.now` when absent. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Everything is read anew that often, in case the watch has missed something. */
const resyncMs = 600_000;

/** A call that takes longer will not help: there is something newer to tell by then. */
const writeTimeoutMs = 5_000;

/** Taking back is a courtesy: the service must not wait long for it. */
const removeTimeoutMs = 2_000;

const defaultBackoff: BackoffOptions = { initialMs: 500, maxMs: 30_000, jitter: 1 };

/**
 * Makes the reports of all replicas, which are in one ConfigMap: each replica writes the key that is its identity by a
 * JSON merge patch, which leaves the others alone, and all of them watch it. Like status and Lease it is of use only
 * while the API server can be reached: whatever fails is tried again, and nobody waits for it.
 */
export function createKubernetesLimiterReports(
  options: KubernetesLimiterReportsOptions,
  deps: KubernetesLimiterReportsDeps,
): LimiterReports {
  const { namespace, name, debounceMs = 500, renewMs = 10_000, expiryMs = 30_000 } = options;
  const { api, leadership, now = monotonicNow, random = Math.random, sleep = sleepFor } = deps;
  const key = keyOf(options.identity);
  const logger = deps.logger.child({ configMap: `${namespace}/${name}` });
  const delayAfter = backoffDelays({ random, ...(options.backoff ?? defaultBackoff) });
  const closing = new AbortController();
  const listeners = new Set<() => void>();
  const entries = createReportEntries({ own: key, expiryMs }, { now, logger });
  const reflector = createReflector(
    { resource: configMaps, namespace, fieldSelector: `metadata.name=${name}`, resyncMs },
    { api, logger, now, random, sleep },
  );
  let told: readonly ReplicaReport[] | undefined;
  let report: LimiterReport | undefined;
  let beat = 0;
  let failures = 0;
  let lastProblem: string | undefined;
  let news = new AbortController();
  let running: Promise<void> | undefined;
  let looking: NodeJS.Timeout | undefined;

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      await pause(renewMs, news.signal);
      await pause(failures === 0 ? debounceMs : Math.max(debounceMs, delayAfter(failures)));
      news = new AbortController();
      if (report !== undefined && !closing.signal.aborted) await tell(report);
    }
  }

  async function pause(ms: number, early: AbortSignal = closing.signal): Promise<void> {
    await sleep(ms, { signal: AbortSignal.any([closing.signal, early]) }).catch(() => undefined);
  }

  async function tell(current: LimiterReport): Promise<void> {
    beat += 1;
    const data = {
      ...Object.fromEntries(leftovers().map((other) => [other, null])),
      [key]: formatLimiterReport(current, beat),
    };
    try {
      await write(data);
      failures = 0;
      lastProblem = undefined;
    } catch (error) {
      if (closing.signal.aborted) return;
      failures += 1;
      news.abort();
      reportProblem(error);
    }
  }

  /** Keys to clear away: each replica those of its former lives, the leader all. */
  function leftovers(): readonly string[] {
    return entries.expired().filter((other) => leadership.isLeader() || isFormerLife(other));
  }

  const isFormerLife = (other: string): boolean => replicaOf(other) === replicaOf(key);

  async function write(data: Readonly<Record<string, string | null>>): Promise<void> {
    const limits = { timeoutMs: writeTimeoutMs, signal: closing.signal };
    try {
      await patch(data, limits);
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
      await create(data, limits);
    }
  }

  function patch(data: Readonly<Record<string, string | null>>, limits: CallLimits): Promise<unknown> {
    return api.send({
      method: 'PATCH',
      path: objectPath(configMaps, { namespace, name }),
      contentType: 'application/merge-patch+json',
      body: { data },
      ...limits,
    });
  }

  /** Rejects with an ApiError 409 when another replica was faster: the next attempt is a patch again. */
  function create(data: Readonly<Record<string, string | null>>, limits: CallLimits): Promise<unknown> {
    const present = Object.fromEntries(Object.entries(data).filter(([, text]) => text !== null));
    return api.send({
      method: 'POST',
      path: collectionPath(configMaps, namespace),
      body: {
        apiVersion: apiVersionOf(configMaps),
        kind: configMaps.kind,
        metadata: { namespace, name },
        data: present,
      },
      ...limits,
    });
  }

  function reportProblem(error: unknown): void {
    if (hasStatus(error, 409)) return;
    const advice = explainApiError(error, { verb: 'create and patch', resource: configMaps, namespace });
    const reason = advice ?? (error instanceof Error ? error.message : String(error));
    if (reason !== lastProblem) logger.warn({ reason }, 'other replicas cannot be told of the limiters here');
    lastProblem = reason;
  }

  /** Tells listeners if what counts is not what it was. */
  function look(): void {
    const present = entries.counting();
    if (isDeepStrictEqual(present, told)) return;
    told = present;
    for (const listener of [...listeners]) listener();
  }

  return {
    publish(next) {
      if (isDeepStrictEqual(next, report)) return;
      report = next;
      news.abort();
    },
    others: () => told,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    start() {
      reflector.start((event) => {
        entries.read(event);
        look();
        // A process that has crashed has left limiters behind that are connected to this one by now.
        if (entries.expired().some(isFormerLife)) news.abort();
      });
      // Of a replica that is gone nothing is heard, so somebody has to look.
      looking = setInterval(look, expiryMs / 10).unref();
      running ??= run();
    },
    async close() {
      closing.abort(new Error('closed'));
      clearInterval(looking);
      await Promise.all([running, reflector.close()]);
      if (beat === 0) return;
      beat = 0;
      try {
        await patch({ [key]: null }, { timeoutMs: removeTimeoutMs });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        logger.info({ reason }, 'the report was not taken back; it runs out by itself');
      }
    },
  };
}

interface CallLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Keys of a ConfigMap have these characters, and 253 of them at most; what tells identities apart is at their end. */
function keyOf(identity: string): string {
  return identity.replace(/[^-._a-zA-Z0-9]/g, '-').slice(-253);
}
