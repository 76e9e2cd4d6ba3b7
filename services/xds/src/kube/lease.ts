import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { XdsMetrics } from '../metrics.ts';
import { type ApiClient, type CallLimits, objectPath, requireRecord } from './client.ts';
import { describeApiError, hasStatus } from './errors.ts';
import { leases, type ObjectName } from './resources.ts';

/** The part of an elector that other parts use. */
export type Leadership = Pick<LeaseElector, 'isLeader' | 'onChange'>;

/** `retryPeriodMs` < `renewDeadlineMs` < `leaseDurationMs`. */
export interface LeaseElectorOptions extends ObjectName {
  readonly api: ApiClient;
  readonly logger: Logger;
  readonly metrics: Pick<XdsMetrics, 'leader'>;
  /** Identity of this process: see `replicaIdentity`. */
  readonly identity: string;
  /** Pod name of this process. Absent when other processes may have the same name. */
  readonly podName?: string | undefined;
  /** Others take over when the holder has not renewed for this time. Default 6000. */
  readonly leaseDurationMs?: number;
  /** The holder steps down when it could not renew for this time. Default 4000. */
  readonly renewDeadlineMs?: number;
  /** Time between attempts, up to a fifth longer. Default 1000. */
  readonly retryPeriodMs?: number;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
  /** Unix time in milliseconds, for the times in the Lease. */
  readonly wallClock?: () => number;
  readonly random?: () => number;
  readonly sleep?: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Pod or host, and a part that is unique per process. */
export function replicaIdentity(podName: string): string {
  return `${podName || hostname()}_${randomUUID()}`;
}

/** The pod or host of an identity. */
export function getReplicaName(identity: string): string {
  return identity.slice(0, identity.lastIndexOf('_')) || identity;
}

/** Releasing is best effort and must not delay the shutdown. */
const releaseTimeoutMs = 2_000;

/** One renewal may be in flight, and one more may have been read before it. */
const releaseAttempts = 3;

interface LeaseRecord {
  /** Identity of the holder; empty when released. */
  readonly holder: string;
  readonly durationMs: number;
  readonly acquiredAt: string;
  readonly renewedAt: string;
  readonly transitions: number;
}

interface Lease {
  readonly record: LeaseRecord;
  /** Includes the resourceVersion that guards the next write. */
  readonly manifest: Readonly<Record<string, unknown>>;
}

/** The Lease as this replica last wrote it, and when it started to. */
interface HeldLease {
  readonly lease: Lease;
  readonly renewedMs: number;
}

/**
 * Elects the replica that writes, by a Lease. Writes carry its resourceVersion, so that one of
 * several candidates wins. Clocks of different machines are never compared: a holder has expired
 * when its record has not changed for its duration, measured by the candidate. The holder steps
 * down earlier, measured by itself.
 */
export class LeaseElector {
  readonly #options: LeaseElectorOptions;
  readonly #renewDeadlineMs: number;
  readonly #now: () => number;
  readonly #wallClock: () => number;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #listeners = new Set<(value: boolean) => void>();
  #running: Promise<void> | undefined;
  /** Undefined while another replica leads. */
  #held: HeldLease | undefined;
  #observed: { readonly record: LeaseRecord; readonly atMs: number } | undefined;
  #hasRead: boolean = false;
  /** The holder in the first read, when it is an earlier process of this pod, which has ended. */
  #predecessor: string | undefined;
  #lastProblem: string | undefined;

  constructor(options: LeaseElectorOptions) {
    const { namespace, name, identity } = options;
    const { renewDeadlineMs = 4_000, now = monotonicNow, wallClock = Date.now } = options;
    this.#options = options;
    this.#renewDeadlineMs = renewDeadlineMs;
    this.#now = now;
    this.#wallClock = wallClock;
    this.#logger = options.logger.child({ lease: `${namespace}/${name}`, identity });
  }

  /** False as soon as another replica may take over. */
  isLeader(): boolean {
    return this.#held !== undefined && this.#leftMs() > 0;
  }

  onChange(listener: (leader: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Outages of the API server are retried. */
  start(): void {
    this.#options.metrics.leader.set(0);
    this.#running ??= this.#run();
  }

  /** Steps down and releases the Lease, so that another replica takes over at once. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    await this.#running;
    if (this.#held === undefined) return;
    this.#stepDown('closing');
    try {
      await this.#release(releaseAttempts);
    } catch (error) {
      const reason = getErrorMessage(error);
      this.#logger.info({ reason }, 'did not release the Lease, it expires');
    }
  }

  async #run(): Promise<void> {
    const { retryPeriodMs = 1_000, random = Math.random, sleep = sleepFor } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#attempt();
      // Not longer than this replica may lead, so that listeners are notified in time.
      const pauseMs = Math.min(retryPeriodMs * (1 + random() / 5), this.#leftMs(), this.#untilTakeoverMs());
      await sleep(Math.max(0, pauseMs), { signal }).catch(() => undefined);
    }
  }

  async #attempt(): Promise<void> {
    this.#stepDownIfLate();
    const startedMs = this.#now();
    try {
      const lease = await this.#takeOrRenew({ timeoutMs: this.#leftMs(), signal: this.#closing.signal });
      this.#lastProblem = undefined;
      // Two calls, each in time, may be late together. This is then a new term, of which listeners
      // are notified: changes in between were not written.
      this.#stepDownIfLate();
      if (lease === undefined) this.#stepDown('another replica holds the Lease');
      else if (this.#now() < startedMs + this.#renewDeadlineMs) this.#lead({ lease, renewedMs: startedMs });
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#logProblem(error);
    }
  }

  #stepDownIfLate(): void {
    if (this.#leftMs() <= 0) this.#stepDown('the Lease was not renewed in time');
  }

  /** Undefined when another replica holds the Lease. */
  async #takeOrRenew(limits: CallLimits): Promise<Lease | undefined> {
    const found = await this.#read(limits);
    if (!this.#hasRead) this.#predecessor = this.#findPredecessor(found?.record);
    this.#hasRead = true;
    if (found === undefined) return await this.#create(this.#nextRecord(undefined), limits);
    if (!isDeepStrictEqual(found.record, this.#observed?.record))
      this.#observed = { record: found.record, atMs: this.#now() };
    if (this.#isHeldByOther(found.record)) return undefined;
    return await this.#replace(found, this.#nextRecord(found.record), limits);
  }

  #isHeldByOther({ holder }: LeaseRecord): boolean {
    const isOther = holder !== '' && holder !== this.#options.identity && holder !== this.#predecessor;
    return isOther && this.#untilExpiryMs() > 0;
  }

  /** Time until the Lease of another replica expires, for an attempt at that moment. */
  #untilTakeoverMs(): number {
    const leftMs = this.#held === undefined ? this.#untilExpiryMs() : 0;
    return leftMs > 0 ? leftMs : Number.POSITIVE_INFINITY;
  }

  /** Time until the record that this candidate has observed expires; 0 for none. */
  #untilExpiryMs(): number {
    if (this.#observed === undefined) return 0;
    const { record, atMs } = this.#observed;
    return Math.max(0, atMs + record.durationMs - this.#now());
  }

  /**
   * Only evaluated at the start, and only until this process leads: should two processes have the
   * name of one pod, they do not take the Lease from each other in turns.
   */
  #findPredecessor({ holder = '' }: Partial<LeaseRecord> = {}): string | undefined {
    const { podName = '' } = this.#options;
    return podName !== '' && getReplicaName(holder) === podName ? holder : undefined;
  }

  #nextRecord(before: LeaseRecord | undefined): LeaseRecord {
    const { identity, leaseDurationMs = 6_000 } = this.#options;
    const time = formatMicroTime(this.#wallClock());
    const isRenewal = before?.holder === identity;
    return {
      holder: identity,
      durationMs: leaseDurationMs,
      acquiredAt: isRenewal ? before.acquiredAt : time,
      renewedAt: time,
      transitions: before === undefined ? 0 : before.transitions + (isRenewal ? 0 : 1),
    };
  }

  /** Time until this replica must step down; the whole deadline while it does not lead. */
  #leftMs(): number {
    if (this.#held === undefined) return this.#renewDeadlineMs;
    return this.#held.renewedMs + this.#renewDeadlineMs - this.#now();
  }

  #lead(held: HeldLease): void {
    const isNew = this.#held === undefined;
    this.#held = held;
    if (!isNew) return;
    this.#predecessor = undefined;
    this.#logger.info('started leading');
    this.#notify(true);
  }

  #stepDown(reason: string): void {
    if (this.#held === undefined) return;
    this.#held = undefined;
    this.#logger.info({ reason }, 'stopped leading');
    this.#notify(false);
  }

  #notify(leader: boolean): void {
    this.#options.metrics.leader.set(leader ? 1 : 0);
    for (const listener of [...this.#listeners]) listener(leader);
  }

  #logProblem(error: unknown): void {
    // 409: another replica wrote between the read and the write.
    if (hasStatus(error, 409)) return;
    const { namespace } = this.#options;
    const reason = describeApiError(error, { verb: 'get, create and update', resource: leases, namespace });
    if (reason !== this.#lastProblem) this.#logger.warn({ reason }, 'cannot acquire or renew the Lease');
    this.#lastProblem = reason;
  }

  /** Reads first, and again after a conflict: an aborted renewal may have reached the server. */
  async #release(attempts: number): Promise<void> {
    const limits = { timeoutMs: releaseTimeoutMs };
    const found = await this.#read(limits);
    if (found?.record.holder !== this.#options.identity) return;
    const renewedAt = formatMicroTime(this.#wallClock());
    try {
      await this.#replace(found, { ...found.record, holder: '', renewedAt, durationMs: 1_000 }, limits);
    } catch (error) {
      if (attempts <= 1 || !hasStatus(error, 409)) throw error;
      await this.#release(attempts - 1);
    }
  }

  async #read(limits: CallLimits): Promise<Lease | undefined> {
    const { api, namespace, name } = this.#options;
    const found = await api.get(leases, { namespace, name }, limits);
    return found === undefined ? undefined : parseLease(found);
  }

  /** Rejects with an ApiError 409 when the Lease exists. */
  async #create(record: LeaseRecord, limits: CallLimits): Promise<Lease> {
    const { api, namespace, name } = this.#options;
    const lease = { metadata: { namespace, name }, spec: toSpec(record) };
    return parseLease(await api.create(leases, lease, limits));
  }

  /** Rejects with an ApiError 409 when the Lease has changed since it was read. */
  async #replace({ manifest }: Lease, record: LeaseRecord, limits: CallLimits): Promise<Lease> {
    const { api, namespace, name } = this.#options;
    // Other fields of the spec are preserved.
    const before = requireRecord(manifest.spec ?? {}, 'Lease: spec');
    const body = { ...manifest, spec: { ...before, ...toSpec(record) } };
    const path = objectPath(leases, { namespace, name });
    return parseLease(await api.send({ method: 'PUT', path, body, ...limits }));
  }
}

/** A `metav1.MicroTime`. */
export function formatMicroTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace('Z', '000Z');
}

function toSpec(record: LeaseRecord): Record<string, unknown> {
  return {
    holderIdentity: record.holder,
    // Rounded up to whole seconds: others must not take over early.
    leaseDurationSeconds: Math.max(1, Math.ceil(record.durationMs / 1_000)),
    acquireTime: record.acquiredAt,
    renewTime: record.renewedAt,
    leaseTransitions: record.transitions,
  };
}

function parseLease(value: unknown): Lease {
  const manifest = requireRecord(value, 'Lease');
  const spec = requireRecord(manifest.spec ?? {}, 'Lease: spec');
  const toText = (field: unknown): string => (typeof field === 'string' ? field : '');
  const toNumber = (field: unknown): number => (typeof field === 'number' ? field : 0);
  return {
    manifest,
    record: {
      holder: toText(spec.holderIdentity),
      durationMs: toNumber(spec.leaseDurationSeconds) * 1_000,
      acquiredAt: toText(spec.acquireTime),
      renewedAt: toText(spec.renewTime),
      transitions: toNumber(spec.leaseTransitions),
    },
  };
}
