import { retry } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { compareText } from '@tollgate/kit/text';
import { maxTimerMs } from '@tollgate/kit/time';
import type { Entry } from '@tollgate/rules/match';
import type { SharedStore } from '../backends/counter-backend.ts';
import { errors } from '../errors.ts';
import type { DescriptorLimit, Limit } from '../ratelimit/limit.ts';

/** Another limit for one counter, for a time. */
export interface Override {
  readonly domain: string;
  /** The entries in the key of the counter. */
  readonly entries: readonly Entry[];
  readonly requestsPerUnit: number;
  /** Of a token bucket. */
  readonly burst?: number;
  readonly untilMs: number;
  readonly reason: string;
  /** The caller who set it. */
  readonly setBy: string;
}

/** An override in replies. */
export interface PublicOverride extends Omit<Override, 'untilMs'> {
  /** RFC 3339. */
  readonly until: string;
}

export function toPublic({ untilMs, ...override }: Override): PublicOverride {
  return { ...override, until: new Date(untilMs).toISOString() };
}

/** All replicas hold all of them in memory. */
const maxOverrides = 1_000;

/** Their texts are the names in the store. */
const maxNameChars = 4_096;

const retryBackoff = { initialMs: 100, maxMs: 5_000 };

interface OverridesOptions {
  /** Absent with memcached, which has no list of names. */
  readonly store: SharedStore | undefined;
  readonly nowMs: () => number;
  readonly logger: Logger;
  /** Called when an override has ended. */
  readonly onEnded: (ended: Override) => void;
}

/** The overrides in force. They are kept in the store, so that replicas that start know them. */
export class Overrides {
  readonly #options: OverridesOptions;
  readonly #stopping = new AbortController();
  #byName: ReadonlyMap<string, Override> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #isLoading: boolean = false;
  #isOutdated: boolean = false;

  constructor(options: OverridesOptions) {
    this.#options = options;
  }

  /** Decisions need not look for one while there is none. */
  get isActive(): boolean {
    return this.#byName.size > 0;
  }

  list(): readonly Override[] {
    return [...this.#byName.values()];
  }

  find(domain: string, entries: readonly Entry[]): Override | undefined {
    return this.#byName.get(toName(domain, entries));
  }

  findPublic(domain: string, entries: readonly Entry[]): PublicOverride | undefined {
    const override = this.find(domain, entries);
    return override && toPublic(override);
  }

  /** The limits, with those of overrides in force. */
  apply(domain: string, limits: readonly DescriptorLimit[]): readonly DescriptorLimit[] {
    return limits.map((limit) => this.applyTo(domain, limit));
  }

  applyTo(domain: string, limit: DescriptorLimit): DescriptorLimit {
    if (limit?.kind !== 'limited') return limit;
    const override = this.find(domain, limit.keyEntries);
    return override === undefined ? limit : withOverride(limit, override);
  }

  /** @throws AppError when there are too many, or the store cannot keep it. */
  async set(override: Override): Promise<void> {
    const store = this.#requireStore();
    const name = toName(override.domain, override.entries);
    if (name.length > maxNameChars) {
      throw errors.malformed_request({ message: 'the descriptor is too long for an override' });
    }
    const stored = await store.listEntries();
    if (stored.size >= maxOverrides && !stored.has(name)) await this.#deleteEnded(store, stored);
    await store.setEntry(name, JSON.stringify(override));
    await this.load();
  }

  /** @throws AppError `override_not_found`. */
  async remove(domain: string, entries: readonly Entry[]): Promise<void> {
    if (!(await this.#requireStore().deleteEntry(toName(domain, entries)))) throw errors.override_not_found();
    await this.load();
  }

  /** Reads them from the store. @throws AppError `backend_failure`. */
  async load(): Promise<void> {
    const { store, nowMs } = this.#options;
    if (store === undefined) return;
    const inForce = new Map<string, Override>();
    for (const [name, text] of await store.listEntries()) {
      const override = parseOverride(text);
      if (override !== undefined && override.untilMs > nowMs()) inForce.set(name, override);
    }
    this.#byName = new Map([...inForce].sort(([a], [b]) => compareText(a, b)));
    this.#endInTime();
  }

  /** @throws AppError `too_many_overrides` when none has ended. */
  async #deleteEnded(store: SharedStore, stored: ReadonlyMap<string, string>): Promise<void> {
    const now = this.#options.nowMs();
    const ended = [...stored].filter(([, text]) => (parseOverride(text)?.untilMs ?? 0) <= now);
    if (ended.length === 0) throw errors.too_many_overrides();
    for (const [name] of ended) await store.deleteEntry(name);
  }

  /** Reads them again in the background, until that succeeds. */
  async reload(): Promise<void> {
    this.#isOutdated = true;
    if (this.#isLoading) return;
    this.#isLoading = true;
    const { signal } = this.#stopping;
    while (this.#isOutdated && !signal.aborted) {
      this.#isOutdated = false;
      await retry(() => this.load(), {
        backoff: retryBackoff,
        signal,
        onRetry: ({ error }) => this.#warn(error),
      }).catch(() => undefined);
    }
    this.#isLoading = false;
  }

  stop(): void {
    this.#stopping.abort();
    clearTimeout(this.#timer);
  }

  #warn(err: unknown): void {
    this.#options.logger.warn({ err }, 'overrides of limits not read, retrying');
  }

  #requireStore(): SharedStore {
    const { store } = this.#options;
    if (store === undefined) {
      throw errors.store_lacks_feature({ message: 'memcached has no overrides: change the rule for a time' });
    }
    return store;
  }

  #endInTime(): void {
    clearTimeout(this.#timer);
    if (!this.isActive || this.#stopping.signal.aborted) return;
    const next = Math.min(...this.list().map(({ untilMs }) => untilMs));
    const delayMs = Math.min(Math.max(0, next - this.#options.nowMs()), maxTimerMs);
    this.#timer = setTimeout(() => this.#dropEnded(), delayMs).unref();
  }

  #dropEnded(): void {
    const now = this.#options.nowMs();
    const ended = this.list().filter(({ untilMs }) => untilMs <= now);
    this.#byName = new Map([...this.#byName].filter(([, { untilMs }]) => untilMs > now));
    for (const override of ended) this.#options.onEnded(override);
    this.#endInTime();
  }
}

/** Exact, unlike the key of a counter. */
function toName(domain: string, entries: readonly Entry[]): string {
  let name = domain;
  for (const { key, value } of entries) name += `\0${key}\0${value}`;
  return name;
}

/** Hits are not leased: the part of the limit that replicas may reserve would be another one. */
function withOverride(limit: Limit, { requestsPerUnit, burst = requestsPerUnit }: Override): Limit {
  const { rate } = limit;
  return {
    ...limit,
    requestsPerUnit,
    capacity: burst,
    lease: undefined,
    rate: rate && { ...rate, limit: requestsPerUnit, burst },
  };
}

/** Undefined for what no version of this service has written. */
function parseOverride(text: string): Override | undefined {
  try {
    // Parsed boundary: the store has what `set` wrote.
    const override = JSON.parse(text) as Override;
    return Array.isArray(override.entries) && Number.isFinite(override.untilMs) ? override : undefined;
  } catch {
    return undefined;
  }
}
