import { isDeepStrictEqual } from 'node:util';
import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { LimiterReport } from '../../domain/limiter-report.ts';
import { formatLimiterReport } from '../../domain/read-limiter-report.ts';
import type { ReplicaReport } from '../../domain/reported-limiters.ts';
import type { ApiClient } from '../../kubernetes/api-client.ts';
import { hasStatus } from '../../kubernetes/api-error.ts';
import { explainApiError } from '../../kubernetes/explain-api-error.ts';
import {
  apiVersionOf,
  collectionPath,
  configMaps,
  type ObjectName,
  objectPath,
} from '../../kubernetes/kube-resource.ts';
import type { Leadership } from '../../kubernetes/leadership.ts';
import { replicaOf } from '../../kubernetes/lease-elector.ts';
import { createReflector } from '../../kubernetes/reflector.ts';
import type { LimiterReports } from '../../ports/limiter-reports.ts';
import { createReportEntries } from './report-entries.ts';

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
