import type { Health } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import type { Unit } from '@tollgate/rules/rule-set';
import type { Settings } from '../config/settings.ts';
import type { StatsRegistry } from '../stats/registry.ts';

/** One counter to add to. */
export interface CounterHit {
  readonly key: string;
  /** Whole number of hits to add; 0 looks and keeps the counter alive. */
  readonly addend: number;
  /** The window's unit; backends may keep counters of seconds apart. */
  readonly unit: Unit;
  /** Whole seconds from now until the window ends, at least 1; afterwards nothing names the counter any more. */
  readonly secondsLeft: number;
  /** Seconds to live for stores that forget by themselves: the whole unit and some jitter, so never less than `secondsLeft`. */
  readonly ttlSeconds: number;
}

/**
 * Where counters are kept.
 *
 * All methods reject with a BackendError when the store cannot answer in its time; a rejected `add` may or may not
 * have been counted. Every adapter runs the suite in test/backends/counter-backend-contract.ts.
 */
export interface CounterBackend {
  /** Adds all hits and answers the counts after adding, in the same order. Equal keys are added one after the other. */
  add(hits: readonly CounterHit[]): Promise<readonly number[]>;
  /** Answers the counts as they stand and changes nothing; 0 for a counter that does not exist. */
  read(hits: readonly CounterHit[]): Promise<readonly number[]>;
  /** Connects; resolves once counters can be added. Rejects soon after `signal` aborts. */
  start(options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Lets go of connections; idempotent. */
  close(): Promise<void>;
}

/** What a backend may use. */
export interface BackendDeps {
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  readonly random: () => number;
  readonly health: Health;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
}

/** A kind of counter backend. */
export interface BackendModule {
  /** Makes the backend from the service's settings; may read files. */
  create(settings: Settings, deps: BackendDeps): Promise<CounterBackend>;
}
