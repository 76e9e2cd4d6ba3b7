import type { Logger } from '@tollgate/kit/logger';
import type { Background } from '../ports/background.ts';
import { createWorkQueue } from './work-queue.ts';

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
