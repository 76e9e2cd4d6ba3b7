import type { Logger } from '@tollgate/kit/logger';

/** Work that a request causes and nobody waits for: its failure is logged, and the service does not stop before it is done. */
export interface Background {
  /** `what` is a constant that names the work in the log. */
  run(what: string, work: () => Promise<void>): void;
}

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

/** As many at a time as a mail server takes connections from us. */
const concurrency = 5;
/** Beyond it work is dropped, with a line in the log: what waits is held in memory. */
const maxWaiting = 1_000;

/** {@link Background}, with an end. */
export interface ClosableBackground extends Background {
  /** Resolves when all work is done, or `signal` aborts. */
  close(signal: AbortSignal): Promise<void>;
}

/** Creates {@link Background} over a bounded queue. */
export function createBackground({ logger }: { readonly logger: Logger }): ClosableBackground {
  const queue = createWorkQueue({ concurrency, maxWaiting });
  const running = new Set<Promise<void>>();

  async function attempt(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await queue.run(work);
    } catch (error) {
      logger.error({ err: error, work: what }, 'work in the background failed');
    }
  }

  return {
    run(what, work) {
      const attempted = attempt(what, work);
      running.add(attempted);
      void attempted.finally(() => running.delete(attempted));
    },
    async close(signal) {
      const { promise: aborted, resolve } = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
      // Work may have begun further work, a mail for example.
      while (running.size > 0 && !signal.aborted) await Promise.race([Promise.all(running), aborted]);
    },
  };
}
