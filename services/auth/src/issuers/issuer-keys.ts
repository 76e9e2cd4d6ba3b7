import { backoffDelays } from '@tollgate/kit/backoff';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { Schedule } from '@tollgate/kit/time';
import type { KeySource } from './definition.ts';
import type { LoadedKeys } from './discovery.ts';
import type { IssuerMetrics } from './metrics.ts';

export interface IssuerKeysOptions {
  readonly load: (source: KeySource) => Promise<LoadedKeys>;
  readonly schedule: Schedule;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly logger: Logger;
  /** Undefined if metrics are off. */
  readonly metrics: IssuerMetrics | undefined;
}

/** Issuers publish new keys hours or days before they sign with them. */
const refreshMs = 10 * 60 * 1000;
/** Interval of reloads that tokens with unknown keys cause, which anyone can send. */
const cooldownMs = 30 * 1000;
const retryDelay = backoffDelays({ initialMs: 1_000, maxMs: 60_000, jitter: 0.2 });

/** An attempt to load keys that failed. */
interface LoadFailure {
  readonly atMs: number;
  readonly problem: string;
}

/**
 * The keys of an issuer, loaded in the background. While it cannot be reached, its last keys stay:
 * tokens that are signed with them are verified as usual.
 */
export class IssuerKeys {
  readonly source: KeySource;
  readonly #options: IssuerKeysOptions;
  #current: LoadedKeys | undefined;
  #loading: Promise<void> | undefined;
  /** The load that an unknown key caused, and the one that it waits for. */
  #requested: Promise<void> | undefined;
  #failures = 0;
  #loadedAtMs: number | undefined;
  #lastFailure: LoadFailure | undefined;
  #nextUnknownMs = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;
  #isClosed: boolean = false;

  constructor(source: KeySource, options: IssuerKeysOptions) {
    this.source = source;
    this.#options = options;
  }

  /** Another object after each change of the keys. Undefined until they were loaded once. */
  get current(): LoadedKeys | undefined {
    return this.#current;
  }

  /** Whether the last attempt to load the keys failed. */
  get isDown(): boolean {
    return this.#failures > 0;
  }

  /** When the keys were loaded last. Undefined until they were loaded once. */
  get loadedAtMs(): number | undefined {
    return this.#loadedAtMs;
  }

  /** The last attempt that failed, also if a later one has succeeded. */
  get lastFailure(): LoadFailure | undefined {
    return this.#lastFailure;
  }

  /** Loads the keys now and then at intervals; does not wait for them. */
  start(): void {
    void this.#load();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#options.metrics?.remove(this.source.name);
  }

  /**
   * Loads the keys because a token names an unknown one: at once, and then once per cooldown.
   * During the cooldown, the load that is under way, if any. Never rejects.
   */
  loadUnknown(): Promise<void> | undefined {
    // A load that is under way may have started before the key was published, except the first.
    if (this.#loading !== undefined && this.#current === undefined) return this.#loading;
    const nowMs = this.#options.nowMs();
    // A time far ahead means that the clock was set back.
    if (nowMs < this.#nextUnknownMs && this.#nextUnknownMs - nowMs <= cooldownMs)
      return this.#requested ?? this.#loading;
    this.#nextUnknownMs = nowMs + cooldownMs;
    const load = this.#loading === undefined ? this.#load() : this.#loading.then(() => this.#load());
    const requested = load.finally(() => {
      if (this.#requested === requested) this.#requested = undefined;
    });
    this.#requested = requested;
    return requested;
  }

  #load(): Promise<void> {
    this.#loading ??= this.#loadOnce().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #loadOnce(): Promise<void> {
    const { load, metrics, logger, nowMs } = this.#options;
    const { name } = this.source;
    this.#cancelTimer?.();
    try {
      const loaded = await load(this.source);
      if (this.#isClosed) return;
      this.#use(loaded);
      this.#loadedAtMs = nowMs();
      if (this.#failures > 0) logger.info({ issuer: name }, 'issuer reachable again');
      this.#failures = 0;
    } catch (error) {
      if (this.#isClosed) return;
      this.#failures += 1;
      this.#lastFailure = { atMs: nowMs(), problem: describe(error) };
      // During an outage every attempt fails the same way.
      if (this.#failures === 1)
        logger.warn(
          { issuer: name, problem: describe(error), has_keys: this.#current !== undefined },
          'failed to load the keys of an issuer, keeping the last ones',
        );
    }
    metrics?.recordLoad(name, !this.isDown);
    const delayMs = this.isDown ? retryDelay(this.#failures) : refreshMs;
    this.#cancelTimer = this.#options.schedule(delayMs, () => this.start());
  }

  #use(loaded: LoadedKeys): void {
    const previous = this.#current;
    if (previous?.text === loaded.text && previous.issuer === loaded.issuer) return;
    this.#current = loaded;
    const { logger } = this.#options;
    const kids = loaded.keys.map(({ kid = '' }) => kid);
    logger.info({ issuer: this.source.name, keys: kids }, 'loaded the keys of an issuer');
    if (loaded.ignored.length > 0)
      logger.debug({ issuer: this.source.name, ignored: loaded.ignored }, 'ignored keys of an issuer');
  }
}

/** Node's errors of connections have an empty message, and the reason in their causes. */
export function describe(error: unknown): string {
  const message = getErrorMessage(error);
  if (error instanceof AggregateError && message === '') return error.errors.map(getErrorMessage).join('; ');
  return message;
}
