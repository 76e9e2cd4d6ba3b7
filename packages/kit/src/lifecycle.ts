import { setTimeout as delay } from 'node:timers/promises';
import type { Health } from './health.ts';
import type { HttpServer } from './http-server.ts';
import type { Logger } from './logger.ts';
import { type SignalledProcess, stopSignals } from './stop-signals.ts';

/** A part of a service that is started and stopped with it. */
export type LifecycleComponent = {
  readonly name: string;
  /**
   * Resolves when the component is ready. Must settle soon after `signal` aborts, which means that
   * the service stops instead.
   */
  start?(context: { readonly signal: AbortSignal }): Promise<void> | void;
  /**
   * Resolves when all work in flight is done. `signal` aborts at the drain deadline: remaining work
   * is to be cut off.
   */
  stop?(context: { readonly signal: AbortSignal }): Promise<void> | void;
};

/** How a service ended. */
type StopSummary = {
  /** A signal's name, or the component that failed. */
  readonly reason: string;
  /** Whether a failure ended the service, rather than a request to stop. */
  readonly failed: boolean;
  /** The failure, when `failed`. */
  readonly error?: unknown;
  /** Components that had not stopped at the drain deadline. */
  readonly late: readonly string[];
};

/** Options of a lifecycle. */
type LifecycleOptions = {
  readonly logger: Logger;
  /** Time for all components together to stop. */
  readonly drainTimeoutMs: number;
  /** Resolves after that time; rejects or resolves early when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
};

/** `start()` rejects with this when the service was stopped before it had started. */
export class StoppedWhileStarting extends Error {
  override readonly name = 'StoppedWhileStarting';
}

/**
 * Time that each remaining component gets after the deadline: a server that drained too long must
 * not keep the sinks behind it from flushing. Also the time in which a start must notice that the
 * service stops instead.
 */
const lateMs = 1_000;

/** Starts and stops the components of a service. */
export class Lifecycle {
  readonly #logger: Logger;
  readonly #drainTimeoutMs: number;
  readonly #sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly #components: LifecycleComponent[] = [];
  readonly #started: LifecycleComponent[] = [];
  readonly #stopping = new AbortController();
  readonly #stopped = Promise.withResolvers<StopSummary>();
  #starting: Promise<void> | undefined;
  #startingOne: Promise<void> = Promise.resolve();
  #startedAll: boolean = false;

  constructor({ logger, drainTimeoutMs, sleep }: LifecycleOptions) {
    this.#logger = logger;
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#sleep = sleep ?? ((ms, signal) => delay(ms, undefined, { signal }));
  }

  /** Aborts when stopping begins, before any component is stopped; listeners run at once. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Resolves when the service has stopped. */
  get stopped(): Promise<StopSummary> {
    return this.#stopped.promise;
  }

  /**
   * Appends a component; it starts after those added before it, and stops before them. Throws once
   * stopping.
   */
  add(component: LifecycleComponent): void {
    const tooLate = this.#startedAll || this.stopping.aborted;
    if (tooLate) throw new TypeError(`component added too late: ${component.name}`);
    this.#components.push(component);
  }

  /**
   * Starts all components in order, once. After a failure, or a stop meanwhile, stops what had
   * started and rejects with the failure or with {@link StoppedWhileStarting}.
   */
  start(): Promise<void> {
    this.#starting ??= Promise.race([this.#startAll(), this.#rejectOnceStopped()]);
    return this.#starting;
  }

  /**
   * Stops all components in reverse order, once; resolves when each has stopped or timed out. Never
   * rejects.
   */
  stop(reason: string): Promise<StopSummary> {
    if (!this.stopping.aborted) {
      this.#logger.info({ reason }, 'stopping');
      void this.#beginStop({ reason, failed: false });
    }
    return this.stopped;
  }

  /**
   * Logs a failure and stops because of it, with the error in the summary; only logs it once
   * stopping.
   */
  fail(reason: string, error: unknown): Promise<StopSummary> {
    const fields = { reason, err: error ?? 'nothing was thrown' };
    if (this.stopping.aborted) this.#logger.error(fields, 'failure while stopping');
    else {
      this.#logger.fatal(fields, 'stopping because of a failure');
      void this.#beginStop({ reason, failed: true, error });
    }
    return this.stopped;
  }

  async #startAll(): Promise<void> {
    // The array itself, not a copy: a component may add further ones while it starts.
    for (const component of this.#components) {
      if (this.stopping.aborted) break;
      this.#startingOne = this.#startOne(component);
      await this.#startingOne;
    }
    if (this.stopping.aborted) await this.#rejectOnceStopped();
    this.#startedAll = true;
  }

  async #startOne(component: LifecycleComponent): Promise<void> {
    // The start need not have ended, so that one that ignores the signal is still followed by a
    // stop.
    this.#started.push(component);
    try {
      await component.start?.({ signal: this.stopping });
      this.#logger.debug({ component: component.name }, 'component started');
    } catch (error) {
      const index = this.#started.indexOf(component);
      if (index >= 0) this.#started.splice(index, 1);
      if (!this.stopping.aborted) void this.fail(`${component.name} did not start`, error);
    }
  }

  async #rejectOnceStopped(): Promise<never> {
    const { reason, failed, error } = await this.stopped;
    throw failed ? error : new StoppedWhileStarting(`stopped while starting: ${reason}`);
  }

  async #beginStop(cause: Omit<StopSummary, 'late'>): Promise<void> {
    this.#stopping.abort();
    this.#stopped.resolve({ ...cause, late: await this.#stopAll() });
  }

  async #stopAll(): Promise<string[]> {
    const drained = new AbortController();
    const deadline = new AbortController();
    void this.#elapsed(this.#drainTimeoutMs, drained.signal).then(() => deadline.abort());
    await this.#settledOrLate(this.#startingOne);
    const late: string[] = [];
    for (let component = this.#started.pop(); component; component = this.#started.pop()) {
      if (!(await this.#stopOne(component, deadline.signal))) late.push(component.name);
    }
    drained.abort();
    return late;
  }

  async #settledOrLate(promise: Promise<void>): Promise<void> {
    const settled = new AbortController();
    await Promise.race([promise, this.#elapsed(lateMs, settled.signal)]);
    settled.abort();
  }

  /** Resolves with whether the component stopped in time. */
  async #stopOne(component: LifecycleComponent, deadline: AbortSignal): Promise<boolean> {
    const done = new AbortController();
    // Aborts only after `stop` was called: a component may listen for the event alone.
    const cutOff = new AbortController();
    const stop = this.#runStop(component, cutOff.signal).then(() => true);
    const timeout = this.#outOfTime(deadline, cutOff, done.signal).then(() => false);
    const inTime = await Promise.race([stop, timeout]);
    done.abort();
    if (!inTime) {
      const fields = { component: component.name, drainTimeoutMs: this.#drainTimeoutMs };
      this.#logger.error(fields, 'component not stopped in time');
    }
    return inTime;
  }

  async #runStop(component: LifecycleComponent, signal: AbortSignal): Promise<void> {
    try {
      await component.stop?.({ signal });
      this.#logger.debug({ component: component.name }, 'component stopped');
    } catch (err) {
      this.#logger.error({ component: component.name, err }, 'component failed to stop');
    }
  }

  /**
   * Cuts off at the deadline, and resolves a moment later: a component that obeys still ends in
   * time.
   */
  async #outOfTime(deadline: AbortSignal, cutOff: AbortController, done: AbortSignal): Promise<void> {
    await aborted(deadline, done);
    cutOff.abort();
    await this.#elapsed(lateMs, done);
  }

  /** Resolves after that time, or never when `cancel` aborts first. */
  async #elapsed(ms: number, cancel: AbortSignal): Promise<void> {
    try {
      await this.#sleep(ms, cancel);
    } catch (error) {
      if (!cancel.aborted) throw error;
    }
    if (cancel.aborted) await new Promise<never>(() => undefined);
  }
}

/** Resolves when `signal` aborts, or never when `cancel` aborts first. */
function aborted(signal: AbortSignal, cancel: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true, signal: cancel });
  });
}

/** Parts of the process that `main.ts` passes in; nothing else touches the process. */
type ProcessAccess = SignalledProcess & {
  readonly logger: Logger;
  /** Ends what handled signals until now. */
  readonly takeOver?: () => void;
};

/**
 * Starts a lifecycle, waits until it has stopped, and exits: 0 after a signal, 1 after a failure.
 *
 * The first SIGTERM, SIGINT or SIGHUP stops it; a second one exits with 1 at once. A start that
 * fails, a call of `fail`, an unhandled rejection and an uncaught exception are logged and stop it
 * with exit code 1.
 */
export async function runUntilSignal(
  lifecycle: Lifecycle,
  { logger, signals, exit, takeOver }: ProcessAccess,
): Promise<void> {
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
  takeOver?.();
  // The lifecycle logs a start that fails, and has it in the summary.
  lifecycle.start().catch(() => undefined);
  const { reason, failed, late } = await lifecycle.stopped;
  logger.info({ reason, late }, 'stopped');
  exit(failed || crashed ? 1 : 0);
  for (const [event, handler] of handlers) signals.off(event, handler);
}

/**
 * The component that stops first: it fails the health check, makes HTTP servers close connections
 * after their responses, and gives load balancers `delayMs` to notice before the servers refuse new
 * requests.
 */
export function createTermination(
  health: Health,
  delayMs: number,
  servers: readonly Pick<HttpServer, 'closeAfterAnswers'>[] = [],
): LifecycleComponent {
  const component = health.component('sigterm', { healthy: true });
  return {
    name: 'termination',
    async stop({ signal }) {
      component.set(false);
      for (const server of servers) server.closeAfterAnswers();
      if (delayMs > 0) await delay(delayMs, undefined, { signal }).catch(() => undefined);
    },
  };
}
