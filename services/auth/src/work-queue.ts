import { AsyncResource } from 'node:async_hooks';
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
