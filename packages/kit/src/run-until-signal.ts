import type { EventEmitter } from 'node:events';
import type { Lifecycle } from './lifecycle.ts';
import type { Logger } from './logger.ts';

/** What `main.ts` hands over: the process is touched nowhere else. */
export type RunDeps = {
  readonly logger: Logger;
  /** `process`: emits the signals, `unhandledRejection` and `uncaughtException`. */
  readonly signals: Pick<EventEmitter, 'on' | 'off'>;
  /** `process.exit`. */
  readonly exit: (code: number) => void;
};

/** Kubernetes sends the first, a terminal the second when asked and the third when it closes. */
const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Starts a lifecycle, waits until it has stopped, and exits: 0 after a signal, 1 after a failure.
 *
 * The first SIGTERM, SIGINT or SIGHUP stops it; a second one exits with 1 at once. A start that fails, a call of `fail`, an unhandled rejection
 * and an uncaught exception are logged and stop it with exit code 1.
 */
export async function runUntilSignal(lifecycle: Lifecycle, deps: RunDeps): Promise<void> {
  const { logger, signals, exit } = deps;
  let signalled = false;
  let crashed = false;

  const onSignal = (signal: unknown): void => {
    if (signalled) {
      logger.warn({ signal }, 'second signal: exiting at once');
      exit(1);
    }
    signalled = true;
    void lifecycle.stop(String(signal));
  };
  const onCrash = (reason: string) => {
    return (error: unknown): void => {
      crashed = true;
      void lifecycle.fail(reason, error);
    };
  };
  const handlers: readonly (readonly [string, (argument: unknown) => void])[] = [
    ...stopSignals.map((signal) => [signal, onSignal] as const),
    ['unhandledRejection', onCrash('unhandled rejection')],
    ['uncaughtException', onCrash('uncaught exception')],
  ];

  for (const [event, handler] of handlers) signals.on(event, handler);
  // The lifecycle logs a start that fails and says so in the summary.
  lifecycle.start().catch(() => undefined);
  const { reason, failed, late } = await lifecycle.stopped;
  logger.info({ reason, late }, 'stopped');
  exit(failed || crashed ? 1 : 0);
  for (const [event, handler] of handlers) signals.off(event, handler);
}
