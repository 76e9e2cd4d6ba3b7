import { isDeepStrictEqual } from 'node:util';
import { type BackoffOptions, backoffDelays } from '@tollgate/kit/backoff';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import { type ApiClient, apiBackoff, type CallLimits } from '../kube/client.ts';
import { describeApiError, hasStatus } from '../kube/errors.ts';
import { getReplicaName, type Leadership } from '../kube/lease.ts';
import { RecoveryDelay } from '../kube/recovery.ts';
import { Reflector, type ReflectorEvent } from '../kube/reflector.ts';
import { configMaps, type ObjectName } from '../kube/resources.ts';
import { type ClientReport, formatReport, parseReport, type ReplicaReport } from './client-report.ts';

export interface ReplicaReportsOptions extends ObjectName {
  readonly api: ApiClient;
  /** The leader removes the reports of replicas that are gone. */
  readonly leadership: Leadership;
  readonly logger: Logger;
  /** Identity of this process: see `replicaIdentity`. */
  readonly identity: string;
  /** Makes the report of this replica. */
  readonly summarize: () => ClientReport;
  /** Changes are collected for this time. Default 200. */
  readonly debounceMs?: number;
  /** Interval of heartbeats. Default 2000. */
  readonly renewMs?: number;
  /** A replica without a heartbeat for this time is gone. Default 6000. */
  readonly expiryMs?: number;
  /**
   * Delays after failures; by default half a second to 30 s, with full jitter. The return of the
   * API server ends them.
   */
  readonly backoff?: BackoffOptions;
}

/** Interval of complete reads, in case the watch has missed something. */
const resyncMs = 600_000;

const writeTimeoutMs = 5_000;

/** Removing the own report is best effort and must not delay the shutdown. */
const removeTimeoutMs = 2_000;

type ConfigMapData = Readonly<Record<string, string | null>>;

/**
 * The reports of all replicas, in one ConfigMap: each replica writes the key that is its identity
 * by a JSON merge patch, which leaves the others alone, and all replicas watch it. Failures are
 * retried and never block the service.
 */
export class ReplicaReports {
  /** Set by this class only; undefined before the first read. */
  others: readonly ReplicaReport[] | undefined;
  readonly #options: ReplicaReportsOptions;
  readonly #logger: Logger;
  readonly #key: string;
  readonly #renewMs: number;
  readonly #entries: ReportEntries;
  readonly #reflector: Reflector;
  readonly #closing = new AbortController();
  readonly #listeners = new Set<() => void>();
  readonly #delayAfter: (failures: number) => number;
  #report: ClientReport | undefined;
  #beat = 0;
  readonly #recovery: RecoveryDelay;
  /** Failed writes in a row, and the last error. */
  #failures = 0;
  #lastError: unknown;
  #lastProblem: string | undefined;
  #writeSoon = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ReplicaReportsOptions) {
    const { namespace, name, api, identity, renewMs = 2_000, expiryMs = 6_000 } = options;
    this.#options = options;
    this.#renewMs = renewMs;
    this.#key = toKey(identity);
    this.#logger = options.logger.child({ configMap: `${namespace}/${name}` });
    this.#delayAfter = backoffDelays({ random: Math.random, ...(options.backoff ?? apiBackoff) });
    this.#recovery = new RecoveryDelay({ api, random: Math.random, sleep: sleepFor });
    this.#entries = new ReportEntries({ own: this.#key, expiryMs, now: monotonicNow, logger: this.#logger });
    this.#reflector = new Reflector({
      api,
      logger: this.#logger,
      resource: configMaps,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      resyncMs,
    });
  }

  /** Writes the report of this replica if it has changed, before the next heartbeat does. */
  changed(): void {
    if (!isDeepStrictEqual(this.#options.summarize(), this.#report)) this.#writeSoon.abort();
  }

  /** Limiters of an earlier process of this replica; undefined before the first read. */
  get formerLimiters(): number | undefined {
    return this.#entries.formerLimiters;
  }

  /** Called when the other reports change, not for heartbeats. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  start(): void {
    this.#reflector.start((event) => {
      this.#entries.update(event);
      this.#checkOthers();
      // The limiters of a process that crashed have reconnected and would count twice.
      if (this.#entries.expired().some((key) => this.#isFormerProcess(key))) this.#writeSoon.abort();
    });
    this.#running ??= this.#run();
  }

  /** Removes the report of this replica. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    await Promise.all([this.#running, this.#reflector.close()]);
    if (this.#beat === 0) return;
    this.#beat = 0;
    try {
      await this.#patch({ [this.#key]: null }, { timeoutMs: removeTimeoutMs });
    } catch (error) {
      const reason = getErrorMessage(error);
      this.#logger.info({ reason }, 'did not remove the report of this replica, it expires');
    }
  }

  async #run(): Promise<void> {
    const { debounceMs = 200, summarize } = this.#options;
    while (!this.#closing.signal.aborted) {
      await this.#pause(debounceMs);
      if (this.#failures > 0) await this.#awaitRecovery();
      this.#writeSoon = new AbortController();
      if (this.#closing.signal.aborted) return;
      this.#report = summarize();
      await this.#tryWrite(this.#report);
      await this.#pause(this.#renewMs, this.#writeSoon.signal);
    }
  }

  async #pause(ms: number, early: AbortSignal = this.#closing.signal): Promise<void> {
    const signal = AbortSignal.any([this.#closing.signal, early]);
    await sleepFor(ms, { signal }).catch(() => undefined);
  }

  async #awaitRecovery(): Promise<void> {
    const { signal } = this.#closing;
    const delayMs = this.#delayAfter(this.#failures);
    await this.#recovery.wait(delayMs, { error: this.#lastError, signal }).catch(() => undefined);
  }

  async #tryWrite(report: ClientReport): Promise<void> {
    this.#beat += 1;
    const { leadership, namespace } = this.#options;
    const stale = this.#entries
      .expired()
      .filter((key) => leadership.isLeader() || this.#isFormerProcess(key));
    try {
      await this.#write({
        ...Object.fromEntries(stale.map((key) => [key, null])),
        [this.#key]: formatReport(report, this.#beat),
      });
      this.#failures = 0;
      this.#lastProblem = undefined;
      this.#recovery.reset();
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#failures += 1;
      this.#lastError = error;
      this.#writeSoon.abort();
      const reason = describeApiError(error, { verb: 'create and patch', resource: configMaps, namespace });
      if (reason !== this.#lastProblem)
        this.#logger.warn({ reason }, 'cannot report limiters to other replicas, retrying');
      this.#lastProblem = reason;
    }
  }

  async #write(data: ConfigMapData): Promise<void> {
    const limits = { timeoutMs: writeTimeoutMs, signal: this.#closing.signal };
    try {
      await this.#patch(data, limits);
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
      await this.#create(data, limits).catch((failure: unknown) => {
        // Another replica has created it meanwhile.
        if (!hasStatus(failure, 409)) throw failure;
        return this.#patch(data, limits);
      });
    }
  }

  #patch(data: ConfigMapData, limits: CallLimits): Promise<unknown> {
    const { api, namespace, name } = this.#options;
    return api.mergePatch(configMaps, { namespace, name }, { body: { data }, ...limits });
  }

  #create(data: ConfigMapData, limits: CallLimits): Promise<unknown> {
    const { api, namespace, name } = this.#options;
    const present = Object.fromEntries(Object.entries(data).filter(([, text]) => text !== null));
    return api.create(configMaps, { metadata: { namespace, name }, data: present }, limits);
  }

  #isFormerProcess(key: string): boolean {
    return getReplicaName(key) === getReplicaName(this.#key);
  }

  #checkOthers(): void {
    const active = this.#entries.active();
    if (isDeepStrictEqual(active, this.others)) return;
    this.others = active;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Allowed characters and length of a ConfigMap key; the unique part of an identity is its end. */
function toKey(identity: string): string {
  return identity.replace(/[^-._a-zA-Z0-9]/g, '-').slice(-253);
}

interface Entry {
  readonly text: string;
  /** Undefined when the text is not a report. */
  readonly report: ClientReport | undefined;
  /** When the text last changed; minus infinity for a former process of this replica. */
  readonly changedMs: number;
}

export interface ReportEntriesOptions {
  /** The key of this replica. */
  readonly own: string;
  readonly expiryMs: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly logger: Logger;
}

/**
 * The keys of the ConfigMap, and which of them have expired. Clocks of different machines are never
 * compared: an entry expires when its text has not changed for the expiry, measured here, and only
 * while events arrive. The heartbeat of this replica comes back as an event; when that is missing,
 * the heartbeats of others may be missing as well.
 */
export class ReportEntries {
  /** Limiters of former processes of this replica; undefined before the first event. */
  formerLimiters: number | undefined;
  readonly #options: ReportEntriesOptions;
  #entries: ReadonlyMap<string, Entry> | undefined;
  #lastEventMs: number;
  #malformed = new Set<string>();

  constructor(options: ReportEntriesOptions) {
    this.#options = options;
    this.#lastEventMs = options.now();
  }

  update(event: ReflectorEvent): void {
    const before = this.#entries ?? new Map<string, Entry>();
    const nowMs = this.#options.now();
    const wasDisconnected = nowMs - this.#lastEventMs > this.#options.expiryMs / 2;
    this.#lastEventMs = nowMs;
    this.#entries = new Map(
      readTexts(event)
        .filter(([key]) => key !== this.#options.own)
        .map(([key, text]): [string, Entry] => {
          const known = before.get(key);
          if (known?.text === text) return [key, wasDisconnected ? { ...known, changedMs: nowMs } : known];
          const changedMs = known === undefined && this.#isFormer(key) ? Number.NEGATIVE_INFINITY : nowMs;
          return [key, { text, report: parseReport(text), changedMs }];
        }),
    );
    this.formerLimiters ??= [...this.#entries.values()]
      .filter(({ changedMs }) => changedMs === Number.NEGATIVE_INFINITY)
      .flatMap(({ report }) => report?.groups ?? [])
      .reduce((sum, { count }) => sum + count, 0);
    this.#logMalformed(this.#entries);
  }

  /** Reports of other replicas that have not expired; undefined before the first event. */
  active(): readonly ReplicaReport[] | undefined {
    if (this.#entries === undefined) return undefined;
    return [...this.#entries].flatMap(([identity, { report, changedMs }]) =>
      report === undefined || this.#isExpired(changedMs)
        ? []
        : { identity, replica: getReplicaName(identity), report },
    );
  }

  /** Keys of replicas that are gone. */
  expired(): readonly string[] {
    return [...(this.#entries ?? [])]
      .filter(([, entry]) => this.#isExpired(entry.changedMs))
      .map(([key]) => key);
  }

  #isExpired(changedMs: number): boolean {
    return this.#lastEventMs - changedMs >= this.#options.expiryMs;
  }

  /** A key in the first event belongs to a process that has ended, unless its text changes. */
  #isFormer(key: string): boolean {
    return this.#entries === undefined && getReplicaName(key) === getReplicaName(this.#options.own);
  }

  /** Logs each key once, because the text changes with every heartbeat. */
  #logMalformed(entries: ReadonlyMap<string, Entry>): void {
    const keys = [...entries].filter(([, { report }]) => report === undefined).map(([key]) => key);
    for (const key of keys) {
      if (!this.#malformed.has(key)) this.#options.logger.warn({ key }, 'malformed limiter report ignored');
    }
    this.#malformed = new Set(keys);
  }
}

function readTexts(event: ReflectorEvent): readonly [string, string][] {
  if (event.type === 'deleted') return [];
  const object = event.type === 'replaced' ? event.objects[0] : event.object;
  const { data } = object?.manifest ?? {};
  if (typeof data !== 'object' || data === null) return [];
  return Object.entries(data).filter(([, text]) => typeof text === 'string');
}
