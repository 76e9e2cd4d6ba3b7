import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { RemoveExpired } from '../use-cases/cleanup/remove-expired.ts';

/** Often enough that a run has little to do. */
const defaultEveryMs = 10 * 60_000;

/** Removes what has expired at the start and again and again, one run at a time. A run that fails is logged; the next may succeed. */
export function createCleanupTimer(deps: {
  readonly removeExpired: RemoveExpired;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly everyMs?: number;
}): LifecycleComponent {
  const { removeExpired, logger, nowMs, everyMs = defaultEveryMs } = deps;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;

  async function run(): Promise<void> {
    try {
      const removed = await removeExpired(nowMs(), stopping.signal);
      if (Object.keys(removed).length > 0) logger.info({ removed }, 'expired rows removed');
    } catch (error) {
      logger.warn({ err: error }, 'expired rows not removed');
    }
    if (!stopping.signal.aborted) timer = setTimeout(start, everyMs).unref();
  }

  function start(): void {
    running = run();
  }

  return {
    name: 'cleanup',
    start,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
