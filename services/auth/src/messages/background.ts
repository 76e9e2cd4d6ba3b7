import type { Logger } from '@tollgate/kit/logger';
import { WorkQueue } from '../work-queue.ts';

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
