import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { XdsMetrics } from '../metrics.ts';
import type { ApiClient } from './client.ts';
import { explainApiError, hasStatus } from './errors.ts';
import {
  apiVersionOf,
  collectionPath,
  leases,
  type ObjectName,
  objectPath,
  requireRecord,
} from './objects.ts';

/** Whether this replica is the one that writes. */
export interface Leadership {
  /** False from the moment on at which another replica may take over. */
  isLeader(): boolean;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: (leader: boolean) => void): () => void;
}

/** What a Lease says. */
interface LeaseRecord {
  /** Empty when nobody holds it. */
  readonly holder: string;
  /** How long the holder may be silent. */
  readonly durationMs: number;
  readonly acquiredAt: string;
  readonly renewedAt: string;
  /** How often it has changed hands. */
  readonly transitions: number;
}

/** A Lease as the API server has it. */
interface Lease {
  readonly record: LeaseRecord;
  /** Guards the next write: whoever read an older one writes nothing. */
  readonly manifest: Readonly<Record<string, unknown>>;
}

/** How long one call may take, and what ends it early. */
interface CallLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Reads a Lease; undefined when there is none. */
async function readLease(api: ApiClient, name: ObjectName, limits: CallLimits): Promise<Lease | undefined> {
  try {
    return leaseOf(await api.send({ method: 'GET', path: objectPath(leases, name), ...limits }));
  } catch (error) {
    if (hasStatus(error, 404)) return undefined;
    throw error;
  }
}

/** Makes a Lease. Rejects with an ApiError 409 when somebody else was faster. */
async function createLease(
  api: ApiClient,
  { namespace, name }: ObjectName,
  record: LeaseRecord,
  limits: CallLimits,
): Promise<Lease> {
  const manifest = { apiVersion: apiVersionOf(leases), kind: leases.kind, metadata: { namespace, name } };
  const body = { ...manifest, spec: specOf(record) };
  return leaseOf(
    await api.send({ method: 'POST', path: collectionPath(leases, namespace), body, ...limits }),
  );
}

/** Writes a Lease that has not changed since it was read. Rejects with an ApiError 409 when it has. */
async function replaceLease(
  api: ApiClient,
  name: ObjectName,
  { lease, record }: { readonly lease: Lease; readonly record: LeaseRecord },
  limits: CallLimits,
): Promise<Lease> {
  // What others have written into the specification is left as it is.
  const before = requireRecord(lease.manifest.spec ?? {}, 'spec of a Lease');
  const body = { ...lease.manifest, spec: { ...before, ...specOf(record) } };
  return leaseOf(await api.send({ method: 'PUT', path: objectPath(leases, name), body, ...limits }));
}

/** A time as `metav1.MicroTime` spells it. */
export function microTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace('Z', '000Z');
}

function specOf(record: LeaseRecord): Record<string, unknown> {
  return {
    holderIdentity: record.holder,
    // Whole seconds, and more rather than less: others must not take over early.
    leaseDurationSeconds: Math.max(1, Math.ceil(record.durationMs / 1_000)),
    acquireTime: record.acquiredAt,
    renewTime: record.renewedAt,
    leaseTransitions: record.transitions,
  };
}

function leaseOf(value: unknown): Lease {
  const manifest = requireRecord(value, 'a Lease');
  const spec = requireRecord(manifest.spec ?? {}, 'spec of a Lease');
  const text = (field: unknown): string => (typeof field === 'string' ? field : '');
  const number = (field: unknown): number => (typeof field === 'number' ? field : 0);
  return {
    manifest,
    record: {
      holder: text(spec.holderIdentity),
      durationMs: number(spec.leaseDurationSeconds) * 1_000,
      acquiredAt: text(spec.acquireTime),
      renewedAt: text(spec.renewTime),
      transitions: number(spec.leaseTransitions),
    },
  };
}

/** Which Lease, for whom, and its times: `retryPeriodMs` < `renewDeadlineMs` < `leaseDurationMs`. */
export interface LeaseElectorOptions extends ObjectName {
  /** Of this replica and this life of it: see `leaseIdentity`. */
  readonly identity: string;
  /** How long others wait before they take over from a silent holder. Default 15000. */
  readonly leaseDurationMs?: number;
  /** How long the holder tries to renew before it steps down. Default 10000. */
  readonly renewDeadlineMs?: number;
  /** Time between attempts, up to a fifth longer. Default 2000. */
  readonly retryPeriodMs?: number;
}

/** What an elector needs. */
export interface LeaseElectorDeps {
  readonly api: ApiClient;
  readonly logger: Logger;
  readonly metrics: Pick<XdsMetrics, 'leader'>;
  /** A clock in milliseconds that does not go back; `performance.now` when absent. */
  readonly now?: () => number;
  /** Unix time in milliseconds, for what people read in the Lease; the system's when absent. */
  readonly wallClock?: () => number;
  readonly random?: () => number;
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Takes part in the election of the replica that writes. */
export interface LeaseElector extends Leadership {
  /** Begins; goes on through every outage of the API server. */
  start(): void;
  /** Steps down and lets go of the Lease, so that another replica need not wait. Idempotent. */
  close(): Promise<void>;
}

/** What a replica calls itself: its pod, or host, and something that no other life of it has. */
export function leaseIdentity(podName: string): string {
  return `${podName || hostname()}_${randomUUID()}`;
}

/** The pod, or host, of an identity. */
export function replicaOf(identity: string): string {
  return identity.slice(0, identity.lastIndexOf('_')) || identity;
}

/** Letting go is a courtesy: the service must not wait long for it. */
const releaseTimeoutMs = 2_000;
/** One renewal can be on its way, and one more can have been read before it. */
const releaseAttempts = 3;

/**
 * Makes an elector over a Lease. Writes are guarded by its resourceVersion, so of two that reach for it one gets it.
 * Clocks of different machines are never compared: a holder is silent when its record has not changed for the duration
 * that it names, measured here; and the holder itself steps down, measured there, before anybody can think so.
 */
export function createLeaseElector(options: LeaseElectorOptions, deps: LeaseElectorDeps): LeaseElector {
  const { identity, leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  const { api, metrics, now = monotonicNow, wallClock = Date.now, random = Math.random } = deps;
  const { sleep = sleepFor } = deps;
  const lease: ObjectName = { namespace: options.namespace, name: options.name };
  const logger = deps.logger.child({ lease: `${lease.namespace}/${lease.name}`, identity });
  const closing = new AbortController();
  const listeners = new Set<(leader: boolean) => void>();
  let running: Promise<void> | undefined;
  /** The Lease as this replica last wrote it, and when it began to; undefined while another one leads. */
  let held: { readonly lease: Lease; readonly renewedMs: number } | undefined;
  let observed: { readonly record: LeaseRecord; readonly atMs: number } | undefined;
  let lastProblem: string | undefined;

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      await attempt();
      // No longer than it may lead, so that whoever listens is told in time.
      const pauseMs = Math.min(retryPeriodMs * (1 + random() / 5), leftMs());
      await sleep(Math.max(0, pauseMs), { signal: closing.signal }).catch(() => undefined);
    }
  }

  async function attempt(): Promise<void> {
    stepDownIfLate();
    const startedMs = now();
    try {
      const taken = await takeOrRenew({ timeoutMs: leftMs(), signal: closing.signal });
      lastProblem = undefined;
      // Two calls that were in time one by one may have been late together. Then this is a new term: listeners are told,
      // for there was none to write what came meanwhile.
      stepDownIfLate();
      if (taken === undefined) stepDown('another replica holds the Lease');
      else if (now() < startedMs + renewDeadlineMs) lead({ lease: taken, renewedMs: startedMs });
    } catch (error) {
      if (closing.signal.aborted) return;
      report(error);
    }
  }

  function stepDownIfLate(): void {
    if (leftMs() <= 0) stepDown('the Lease was not renewed in time');
  }

  /** Answers the Lease when it is ours now, and undefined when another replica has it. */
  async function takeOrRenew(limits: CallLimits): Promise<Lease | undefined> {
    const found = await readLease(api, lease, limits);
    if (found === undefined) return await createLease(api, lease, nextRecord(undefined), limits);
    if (!isDeepStrictEqual(found.record, observed?.record)) observed = { record: found.record, atMs: now() };
    if (isHeldByOther(found.record)) return undefined;
    return await replaceLease(api, lease, { lease: found, record: nextRecord(found.record) }, limits);
  }

  function isHeldByOther({ holder, durationMs }: LeaseRecord): boolean {
    if (holder === '' || holder === identity) return false;
    return observed !== undefined && now() < observed.atMs + durationMs;
  }

  function nextRecord(before: LeaseRecord | undefined): LeaseRecord {
    const time = microTime(wallClock());
    const same = before?.holder === identity;
    return {
      holder: identity,
      durationMs: leaseDurationMs,
      acquiredAt: same ? before.acquiredAt : time,
      renewedAt: time,
      transitions: before === undefined ? 0 : before.transitions + (same ? 0 : 1),
    };
  }

  /** Until this replica must step down; a whole deadline while it does not lead. */
  function leftMs(): number {
    return held === undefined ? renewDeadlineMs : held.renewedMs + renewDeadlineMs - now();
  }

  function lead(next: NonNullable<typeof held>): void {
    const before = held;
    held = next;
    if (before !== undefined) return;
    logger.info('this replica writes the status of objects');
    tell(true);
  }

  function stepDown(reason: string): void {
    if (held === undefined) return;
    held = undefined;
    logger.info({ reason }, 'this replica no longer writes the status of objects');
    tell(false);
  }

  function tell(leader: boolean): void {
    metrics.leader.set(leader ? 1 : 0);
    for (const listener of [...listeners]) listener(leader);
  }

  function report(error: unknown): void {
    // Somebody wrote between our reading and our writing; the next reading tells who.
    if (hasStatus(error, 409)) return;
    const { namespace } = lease;
    const advice = explainApiError(error, { verb: 'get, create and update', resource: leases, namespace });
    const reason = advice ?? (error instanceof Error ? error.message : String(error));
    if (reason !== lastProblem) logger.warn({ reason }, 'the Lease cannot be taken or renewed');
    lastProblem = reason;
  }

  async function release(): Promise<void> {
    if (held === undefined) return;
    stepDown('closing');
    try {
      await letGo(releaseAttempts);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.info({ reason }, 'the Lease was not released; it runs out by itself');
    }
  }

  /** Read first, and again after a conflict: a renewal that closing cut off may have reached the server all the same. */
  async function letGo(attempts: number): Promise<void> {
    const found = await readLease(api, lease, { timeoutMs: releaseTimeoutMs });
    if (found?.record.holder !== identity) return;
    const record = { ...found.record, holder: '', renewedAt: microTime(wallClock()), durationMs: 1_000 };
    try {
      await replaceLease(api, lease, { lease: found, record }, { timeoutMs: releaseTimeoutMs });
    } catch (error) {
      if (attempts <= 1 || !hasStatus(error, 409)) throw error;
      await letGo(attempts - 1);
    }
  }

  return {
    isLeader: () => held !== undefined && leftMs() > 0,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    start() {
      metrics.leader.set(0);
      running ??= run();
    },
    async close() {
      closing.abort(new Error('closed'));
      await running;
      await release();
    },
  };
}
