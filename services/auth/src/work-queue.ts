/** The work queue is full. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
}

/** Runs work in order, with bounded concurrency and a bounded number of waiting items. */
export class WorkQueue {
  readonly #concurrency: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: { readonly concurrency: number; readonly maxWaiting: number }) {
    this.#concurrency = options.concurrency;
    this.#maxWaiting = options.maxWaiting;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Rejects with {@link QueueFull} at once when too many items are waiting. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#concurrency) {
      if (this.#waiting.length >= this.#maxWaiting)
        throw new QueueFull(`${this.#maxWaiting} items are waiting already`);
      // The slot is handed over, so `#running` does not change and later callers cannot overtake.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running++;
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
