/** Says that a queue takes no more. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
}

/** Runs pieces of work, a few at a time and in order; so many more may wait. */
export interface WorkQueue {
  /** Runs the work when its turn has come. Rejects with {@link QueueFull} at once when too many wait. */
  run<T>(work: () => Promise<T>): Promise<T>;
  waiting(): number;
}

/** Creates an empty queue. */
export function createWorkQueue(options: {
  readonly concurrency: number;
  readonly maxWaiting: number;
}): WorkQueue {
  const { concurrency, maxWaiting } = options;
  const waiting: (() => void)[] = [];
  let running = 0;

  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (running >= concurrency) {
      if (waiting.length >= maxWaiting) throw new QueueFull(`${maxWaiting} wait already`);
      // Whoever ends hands its place over, so that nobody who comes in between takes it.
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else {
      running++;
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  }

  return { run, waiting: () => waiting.length };
}
