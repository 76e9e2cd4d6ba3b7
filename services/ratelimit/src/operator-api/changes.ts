import type { Logger } from '@tollgate/kit/logger';
import type { Overrides } from '../decision/overrides.ts';
import type { SharedStore } from '../stores/counter-store.ts';

/** Counters that the counter API changed: what replicas know of them is outdated. */
export interface Change {
  readonly keys?: readonly string[];
  /** All counters whose keys begin with this text. */
  readonly prefix?: string;
  /** Names of overrides that were set or removed; `all` when any may have been. */
  readonly overrides?: readonly string[] | 'all';
}

/** State of counters in a process. */
interface CounterCache {
  forget(keys: readonly string[]): void;
  forgetByPrefix(prefix: string): void;
}

interface CounterChangesOptions {
  /** Absent where the store sends no messages: then only this process applies its changes. */
  readonly store: SharedStore | undefined;
  readonly overrides: Overrides;
  readonly logger: Logger;
}

/** Tells all replicas what the counter API changed, and applies what they tell. */
export class CounterChanges {
  readonly #options: CounterChangesOptions;
  readonly #caches: CounterCache[] = [];
  readonly #stopping = new AbortController();
  #unsent: Change[] = [];
  /** Settles once `#unsent` is published. */
  #next: Promise<void> | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: CounterChangesOptions) {
    this.#options = options;
  }

  addCache(cache: CounterCache): void {
    this.#caches.push(cache);
  }

  /** Resolves after the first attempt to subscribe, which may have failed. */
  async start(): Promise<void> {
    const { store, overrides } = this.#options;
    // Decisions begin with the overrides, unless the store fails; then the subscription reads them.
    await overrides.load().catch(() => undefined);
    const onMessage = (message: string): void => this.#onMessage(message);
    const onGap = (): void => this.apply({ prefix: '', overrides: 'all' });
    await store?.subscribe({ onMessage, onGap }, this.#stopping.signal);
  }

  stop(): void {
    this.#stopping.abort();
    this.#options.overrides.stop();
  }

  /** @throws AppError `backend_failure` when the other replicas may not know it. */
  announce(change: Change): Promise<void> {
    this.apply(change);
    this.#unsent.push(change);
    this.#next ??= this.#publish();
    return this.#next;
  }

  /** One message at a time: commits of reservations may cause many changes. */
  async #publish(): Promise<void> {
    await this.#sending.catch(() => undefined);
    const message = JSON.stringify(this.#unsent);
    this.#unsent = [];
    this.#next = undefined;
    this.#sending = this.#options.store?.publish(message) ?? Promise.resolve();
    await this.#sending;
  }

  #onMessage(message: string): void {
    try {
      const changes: unknown = JSON.parse(message);
      if (!Array.isArray(changes)) throw new TypeError('it is not a list');
      for (const change of changes) this.apply(parseChange(change));
    } catch (err) {
      this.#options.logger.warn({ err }, 'ignored invalid message about changed counters');
    }
  }

  /** Applies a change to this process only. */
  apply({ keys = [], prefix, overrides = [] }: Change): void {
    this.#options.overrides.refresh(overrides);
    for (const cache of this.#caches) {
      if (keys.length > 0) cache.forget(keys);
      if (prefix !== undefined) cache.forgetByPrefix(prefix);
    }
  }
}

/** @throws Error when it is not a message of {@link CounterChanges}. */
function parseChange(value: unknown): Change {
  if (typeof value !== 'object' || value === null) throw new TypeError('it is not an object');
  const { keys, prefix, overrides }: Readonly<Record<string, unknown>> = { ...value };
  return {
    ...(Array.isArray(keys) && { keys: keys.map(String) }),
    ...(typeof prefix === 'string' && { prefix }),
    ...(overrides === 'all' && { overrides }),
    ...(Array.isArray(overrides) && { overrides: overrides.map(String) }),
  };
}
