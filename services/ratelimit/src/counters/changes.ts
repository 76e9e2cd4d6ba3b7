import type { Logger } from '@tollgate/kit/logger';
import type { SharedStore } from '../backends/counter-backend.ts';

/** Counters that the counter API changed: what replicas know of them is outdated. */
interface Change {
  readonly keys?: readonly string[];
  /** All counters whose keys begin with this text. */
  readonly prefix?: string;
}

/** What a process knows of counters. */
interface CounterCache {
  forget(keys: readonly string[]): void;
  forgetByPrefix(prefix: string): void;
}

interface CounterChangesOptions {
  /** Absent where the store sends no messages: then only this process applies its changes. */
  readonly store: SharedStore | undefined;
  readonly caches: readonly CounterCache[];
  readonly logger: Logger;
}

/** Tells all replicas what the counter API changed, and applies what they tell. */
export class CounterChanges {
  readonly #options: CounterChangesOptions;
  readonly #stopping = new AbortController();

  constructor(options: CounterChangesOptions) {
    this.#options = options;
  }

  /** Resolves after the first attempt to subscribe, which may have failed. */
  async start(): Promise<void> {
    const onMessage = (message: string): void => this.#onMessage(message);
    const onGap = (): void => this.#apply({ prefix: '' });
    await this.#options.store?.subscribe({ onMessage, onGap }, this.#stopping.signal);
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** @throws AppError `backend_failure` when the other replicas may not know it. */
  async announce(change: Change): Promise<void> {
    this.#apply(change);
    await this.#options.store?.publish(JSON.stringify(change));
  }

  #onMessage(message: string): void {
    try {
      this.#apply(parseChange(message));
    } catch (err) {
      this.#options.logger.warn({ err }, 'ignored invalid message about changed counters');
    }
  }

  #apply({ keys = [], prefix }: Change): void {
    for (const cache of this.#options.caches) {
      if (keys.length > 0) cache.forget(keys);
      if (prefix !== undefined) cache.forgetByPrefix(prefix);
    }
  }
}

/** @throws Error when it is not a message of {@link CounterChanges}. */
function parseChange(message: string): Change {
  const value: unknown = JSON.parse(message);
  if (typeof value !== 'object' || value === null) throw new TypeError('it is not an object');
  const { keys, prefix }: Readonly<Record<string, unknown>> = { ...value };
  return {
    ...(Array.isArray(keys) && { keys: keys.map(String) }),
    ...(typeof prefix === 'string' && { prefix }),
  };
}
