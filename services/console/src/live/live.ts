import { getRequestFailure } from '@tollgate/kit/errors';
import type { Settings } from '../config/settings.ts';
import { type Addresses, type ReplicaLocation, resolveReplicas } from '../services/replicas.ts';
import { type Difference, type Point, subtract, toPoint } from './rates.ts';
import { metricNames, type ReplicaKind, readReplica, type Signal, type Totals } from './replica-metrics.ts';
import { scrape } from './scrape.ts';

/** How often all replicas are read. */
const everyMs = 2000;

/** An hour. */
const maxPoints = 1800;

/** A replica that has not answered for this time is forgotten, if its name has other addresses. */
const forgetMs = 10 * 60_000;

/** A counter of problems that has grown within this time is a problem now. */
const recentMs = 2 * 60_000;

/** A process that serves metrics. */
export interface Replica {
  readonly url: string;
  /** Unknown until it has answered. */
  kind: ReplicaKind | undefined;
  version: string | undefined;
  /** Unix time in milliseconds of the start of the process. */
  startedMs: number | undefined;
  answeredMs: number | undefined;
  /** Since when it does not answer, and why. */
  failure: { readonly sinceMs: number; readonly reason: string } | undefined;
  /** Problems that it reports now. */
  signals: readonly Signal[];
}

interface State extends Replica {
  totals: Totals | undefined;
  totalsMs: number;
  /** When a counter of problems has grown, by its text. */
  readonly grownMs: Map<string, number>;
  counters: ReadonlyMap<string, number>;
}

/** Samples of all replicas, of an hour, in memory. */
export class Live {
  readonly #settings: Pick<Settings, 'metricsUrls' | 'requestTimeoutMs'>;
  readonly #nowMs: () => number;
  readonly #addresses: Addresses | undefined;
  readonly #replicas = new Map<string, State>();
  readonly #points: Point[] = [];
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;

  /** @param addresses default: those of DNS */
  constructor(
    settings: Pick<Settings, 'metricsUrls' | 'requestTimeoutMs'>,
    nowMs: () => number,
    addresses?: Addresses,
  ) {
    this.#settings = settings;
    this.#nowMs = nowMs;
    this.#addresses = addresses;
  }

  start(): void {
    if (this.#settings.metricsUrls.length === 0) return;
    const poll = (): void => {
      // A slow replica delays the next round instead of adding another one.
      this.#polling ??= this.#poll().finally(() => {
        this.#polling = undefined;
      });
    };
    poll();
    this.#timer = setInterval(poll, everyMs);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#polling;
  }

  /** The oldest first. */
  points(sinceMs: number): readonly Point[] {
    return this.#points.filter(({ atMs }) => atMs >= sinceMs);
  }

  replicas(): readonly Replica[] {
    return [...this.#replicas.values()];
  }

  async #poll(): Promise<void> {
    const replicas = await resolveReplicas(this.#settings.metricsUrls, this.#addresses);
    this.#forget(new Set(replicas.map(({ url }) => url)));
    const differences = await Promise.all(replicas.map((replica) => this.#read(replica)));
    const of = (kind: ReplicaKind): Difference[] =>
      differences.flatMap((read) => (read !== undefined && read.kind === kind ? [read.difference] : []));
    this.#points.push(toPoint(this.#nowMs(), { limiters: of('limiter'), authServers: of('auth server') }));
    if (this.#points.length > maxPoints) this.#points.shift();
  }

  #state(url: string): State {
    const known = this.#replicas.get(url);
    if (known !== undefined) return known;
    const state: State = {
      ...{
        url,
        kind: undefined,
        version: undefined,
        startedMs: undefined,
        answeredMs: undefined,
        failure: undefined,
      },
      ...{ signals: [], totals: undefined, totalsMs: 0, grownMs: new Map(), counters: new Map() },
    };
    this.#replicas.set(url, state);
    return state;
  }

  /** Undefined for the first sample of a replica, and for one that does not answer. */
  async #read(location: ReplicaLocation): Promise<{ kind: ReplicaKind; difference: Difference } | undefined> {
    const now = this.#nowMs();
    const state = this.#state(location.url);
    try {
      const timeoutMs = Math.min(this.#settings.requestTimeoutMs, everyMs);
      const metrics = await scrape(location, { names: metricNames, timeoutMs });
      const { kind, version, totals, signals } = readReplica(metrics);
      const before = state.totals;
      const seconds = (now - state.totalsMs) / 1000;
      Object.assign(state, { kind, version, totals, totalsMs: now, answeredMs: now, failure: undefined });
      state.startedMs = totals.startedAt * 1000;
      state.signals = signals.filter((signal) => isProblem(state, signal, now));
      state.counters = new Map(signals.map(({ text, value }) => [text, value]));
      return before === undefined || seconds <= 0
        ? undefined
        : { kind, difference: subtract(totals, before, seconds) };
    } catch (error) {
      const reason = getRequestFailure(error);
      state.failure = { sinceMs: state.failure?.sinceMs ?? now, reason };
      state.signals = [];
      return undefined;
    }
  }

  /** Pods come and go: those whose address is no longer in DNS. */
  #forget(current: ReadonlySet<string>): void {
    const before = this.#nowMs() - forgetMs;
    for (const [url, { answeredMs }] of this.#replicas)
      if (!current.has(url) && (answeredMs ?? 0) < before) this.#replicas.delete(url);
  }
}

function isProblem(state: State, { text, value, isCounter }: Signal, now: number): boolean {
  if (!isCounter) return value > 0;
  const before = state.counters.get(text);
  if (before !== undefined && value > before) state.grownMs.set(text, now);
  return now - (state.grownMs.get(text) ?? Number.NEGATIVE_INFINITY) < recentMs;
}
