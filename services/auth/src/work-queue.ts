import { AsyncResource } from 'node:async_hooks';
import type { Logger } from '@tollgate/kit/logger';
import PQueue from 'p-queue';

/** The work queue is full. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
}

/** Runs work in order, with bounded concurrency and a bounded number of waiting items. */
export class WorkQueue {
  readonly #queue: PQueue;
  readonly #maxWaiting: number;

  constructor(options: { readonly concurrency: number; readonly maxWaiting: number }) {
    this.#queue = new PQueue({ concurrency: options.concurrency });
    this.#maxWaiting = options.maxWaiting;
  }

  /** Rejects with {@link QueueFull} at once when too many items are waiting. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#queue.size >= this.#maxWaiting)
      throw new QueueFull(`${this.#maxWaiting} items are waiting already`);
    // p-queue starts work in the async context of the previous item: its spans would be in the
    // trace of another request.
    return this.#queue.add(AsyncResource.bind(work));
  }

  /** Resolves when no work is running or waiting. */
  idle(): Promise<void> {
    return this.#queue.onIdle();
  }
}

/** The number of connections to the mail server. */
const concurrency = 5;
/** Further work is dropped and logged, as waiting work is held in memory. */
const maxWaiting = 1_000;

/** Work that responses do not wait for. Failures are logged. */
export class Background {
  readonly #logger: Logger;
  readonly #queue = new WorkQueue({ concurrency, maxWaiting });

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `name` is a constant that identifies the work in the log. */
  run(name: string, work: () => Promise<void>): void {
    const logFailure = (error: unknown) =>
      this.#logger.error({ err: error, work: name }, 'background work failed');
    // Caught inside the queue: `close` waits for the log, too.
    this.#queue.run(() => work().catch(logFailure)).catch(logFailure);
  }

  /** Resolves when all work, including work that it starts, is done, or `signal` aborts. */
  async close(signal: AbortSignal): Promise<void> {
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    await Promise.race([this.#queue.idle(), aborted]);
  }
}
