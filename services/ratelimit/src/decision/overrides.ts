import { retry } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { maxTimerMs } from '@tollgate/kit/time';
import type { Entry } from '@tollgate/rules/match';
import { errors } from '../errors.ts';
import type { SharedStore } from '../stores/counter-store.ts';
import type { DescriptorLimit, Limit } from './find-limit.ts';

/** Another limit for one counter, for a time. */
export interface Override {
  readonly domain: string;
  /** The entries in the key of the counter. */
  readonly entries: readonly Entry[];
  readonly requestsPerUnit: number;
  /** Burst of a token bucket. */
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

/** All replicas hold all of them in memory: about 1 KB each, with entries of usual length. */
export const maxOverrides = 10_000;

/** Changes that are read one by one; more, while the store fails, are read together. */
const maxSingleReads = 100;

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

/**
 * The overrides in force. They are kept in the store, so that replicas that start know them. All
 * are read at the start and when changes may have been missed, and else the changed ones.
 */
export class Overrides {
  readonly #options: OverridesOptions;
  readonly #stopping = new AbortController();
  readonly #byName = new Map<string, Override>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer runs out. */
  #nextEndMs = Number.POSITIVE_INFINITY;
  /** Names to be read again. */
  #outdated = new Set<string>();
  #areAllOutdated: boolean = false;
  #isRefreshing: boolean = false;

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
    if (!this.#byName.has(name)) await this.#makeSpace(store);
    await store.setEntry(name, JSON.stringify(override));
    this.#put(name, override);
  }

  /** @throws AppError `override_not_found`. */
  async remove(domain: string, entries: readonly Entry[]): Promise<void> {
    const name = toName(domain, entries);
    if (!(await this.#requireStore().deleteEntry(name))) throw errors.override_not_found();
    this.#put(name, undefined);
  }

  /** Reads all from the store. @throws AppError `backend_failure`. */
  async load(): Promise<void> {
    const { store } = this.#options;
    if (store === undefined) return;
    const stored = await store.listEntries();
    for (const name of [...this.#byName.keys()]) if (!stored.has(name)) this.#put(name, undefined);
    for (const [name, text] of stored) this.#put(name, parseOverride(text));
  }

  /** Reads the changed ones in the background, until that succeeds. */
  refresh(changed: readonly string[] | 'all'): void {
    if (changed === 'all') this.#areAllOutdated = true;
    else for (const name of changed) this.#outdated.add(name);
    // So many reads of one take longer than one of all.
    if (this.#outdated.size > maxSingleReads) this.#areAllOutdated = true;
    if (this.#areAllOutdated) this.#outdated.clear();
    if (!this.#isRefreshing) void this.#refreshOutdated();
  }

  /** One after the other: what is read later is newer. */
  async #refreshOutdated(): Promise<void> {
    this.#isRefreshing = true;
    const { signal } = this.#stopping;
    while ((this.#areAllOutdated || this.#outdated.size > 0) && !signal.aborted) {
      await retry(() => this.#readOutdated(), {
        backoff: retryBackoff,
        signal,
        onRetry: ({ error }) => this.#warn(error),
      }).catch(() => undefined);
    }
    this.#isRefreshing = false;
  }

  /** Announcements that arrive meanwhile are read afterwards, and failed ones again. */
  async #readOutdated(): Promise<void> {
    const [names, isAll] = [this.#outdated, this.#areAllOutdated];
    this.#outdated = new Set();
    this.#areAllOutdated = false;
    try {
      await (isAll ? this.load() : this.#loadEach(names));
    } catch (error) {
      this.refresh(isAll ? 'all' : [...names]);
      throw error;
    }
  }

  async #loadEach(names: ReadonlySet<string>): Promise<void> {
    for (const name of names) {
      const text = await this.#options.store?.getEntry(name);
      this.#put(name, text === undefined ? undefined : parseOverride(text));
    }
  }

  /** Undefined, and one that has ended, removes it. */
  #put(name: string, override: Override | undefined): void {
    if (override === undefined || override.untilMs <= this.#options.nowMs()) this.#byName.delete(name);
    else this.#byName.set(name, override);
    if (override !== undefined && override.untilMs < this.#nextEndMs) this.#endInTime();
  }

  /** @throws AppError `too_many_overrides` when there is no space for another one. */
  async #makeSpace(store: SharedStore): Promise<void> {
    if (this.#byName.size >= maxOverrides) throw errors.too_many_overrides();
    if ((await store.countEntries()) < maxOverrides) return;
    const now = this.#options.nowMs();
    const stored = await store.listEntries();
    const ended = [...stored].filter(([, text]) => (parseOverride(text)?.untilMs ?? 0) <= now);
    if (ended.length === 0) throw errors.too_many_overrides();
    for (const [name] of ended) await store.deleteEntry(name);
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
    this.#nextEndMs = Number.POSITIVE_INFINITY;
    for (const { untilMs } of this.#byName.values()) this.#nextEndMs = Math.min(this.#nextEndMs, untilMs);
    if (!this.isActive || this.#stopping.signal.aborted) return;
    const delayMs = Math.min(Math.max(0, this.#nextEndMs - this.#options.nowMs()), maxTimerMs);
    this.#timer = setTimeout(() => this.#dropEnded(), delayMs).unref();
  }

  #dropEnded(): void {
    const now = this.#options.nowMs();
    for (const [name, override] of this.#byName) {
      if (override.untilMs > now) continue;
      this.#byName.delete(name);
      this.#options.onEnded(override);
    }
    this.#endInTime();
  }
}

/** The name in the store: exact, unlike the key of a counter. */
export function toName(domain: string, entries: readonly Entry[]): string {
  let name = domain;
  for (const { key, value } of entries) name += `\0${key}\0${value}`;
  return name;
}

/** Hits are not leased: the part of the limit that replicas may reserve would be another one. */
function withOverride(limit: Limit, { requestsPerUnit, burst = requestsPerUnit }: Override): Limit {
  const { rate } = limit.rule;
  const rule = {
    ...limit.rule,
    requestsPerUnit,
    capacity: burst,
    lease: undefined,
    rate: rate && { ...rate, limit: requestsPerUnit, burst },
  };
  return { ...limit, rule };
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
