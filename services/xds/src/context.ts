import type { Logger } from '@tollgate/kit/logger';
import type { XdsMetrics } from './metrics.ts';
import type { PipelineTrace } from './tracing.ts';

/** What most parts of the service use. */
export interface Context {
  readonly logger: Logger;
  readonly metrics: XdsMetrics;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Undefined when tracing is off. */
  readonly trace?: PipelineTrace | undefined;
}

/** Subscribers to one kind of change. */
export class Listeners<Change = void> {
  readonly #listeners = new Set<(change: Change) => void>();

  /** Returns the function that unsubscribes. */
  add(listener: (change: Change) => void): () => void {
    // A function of its own, so that a listener that is added twice is removed once.
    const own = (change: Change): void => listener(change);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  notify(change: Change): void {
    for (const listener of [...this.#listeners]) listener(change);
  }
}

/** Starts a timer; the function it returns cancels it. Tests pass timers of their own. */
export type Schedule = (delayMs: number, run: () => void) => () => void;

/** Timers of the process, which do not keep it alive. */
export const scheduleByTimer: Schedule = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  timer.unref();
  return () => clearTimeout(timer);
};
