import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Health } from './health.ts';
import type { HttpServer } from './http-server.ts';
import type { Logger } from './logger.ts';

/** A part of a service that is started and stopped with it. */
export type LifecycleComponent = {
  readonly name: string;
  /** Resolves when the component is ready. Must end soon after `signal` aborts, which says that the service stops instead. */
  start?(context: { readonly signal: AbortSignal }): Promise<void> | void;
  /** Resolves when all work in flight is done. `signal` aborts at the drain deadline: what is left is to be cut off. */
  stop?(context: { readonly signal: AbortSignal }): Promise<void> | void;
};

/** How a service ended. */
type StopSummary = {
  /** What was asked for or went wrong: a signal's name, a component's failure. */
  readonly reason: string;
  /** Whether a failure ended the service, and not a request to stop. */
  readonly failed: boolean;
  /** The failure, when `failed`. */
  readonly error?: unknown;
  /** Components that had not stopped at the drain deadline. */
  readonly late: readonly string[];
};

/** Starts and stops the components of a service as one. */
export type Lifecycle = {
  /** Appends a component; it starts after those added before it, and stops before them. Throws once stopping. */
  add(component: LifecycleComponent): void;
  /** Starts all components in order, once. Rejects with what a start threw, or with {@link StoppedWhileStarting}, after stopping what had started. */
  start(): Promise<void>;
  /** Stops all components in reverse order, once; resolves when all have stopped or been given up. Never rejects. */
  stop(reason: string): Promise<StopSummary>;
  /** Logs a failure and stops because of it, as `stop` does, with the error in the summary; only logs it once stopping. */
  fail(reason: string, error: unknown): Promise<StopSummary>;
  /** Aborts when stopping begins, before any component is asked to stop; listeners run at once. */
  readonly stopping: AbortSignal;
  /** Resolves when the service has stopped. */
  readonly stopped: Promise<StopSummary>;
};

/** What a lifecycle needs. */
export type LifecycleDeps = {
  readonly logger: Logger;
  /** How long all components together may take to stop. */
  readonly drainTimeoutMs: number;
  /** Resolves after that time; rejects or resolves early when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
};

/** `start()` rejects with this when the service was stopped before it had started. */
export class StoppedWhileStarting extends Error {
  override readonly name = 'StoppedWhileStarting';
}

/**
 * After the deadline the components still waiting for their turn get this long each: a server that drained too long must not
 * keep the sinks behind it from flushing. Also how long a start may take to notice that the service stops instead.
 */
const lateMs = 1_000;

/** Creates a lifecycle without components. */
export function createLifecycle(deps: LifecycleDeps): Lifecycle {
  const { logger, drainTimeoutMs, sleep = (ms, signal) => delay(ms, undefined, { signal }) } = deps;
  const components: LifecycleComponent[] = [];
  const started: LifecycleComponent[] = [];
  const stopping = new AbortController();
  const stopped = Promise.withResolvers<StopSummary>();
  let starting: Promise<void> | undefined;
  let startingOne: Promise<void> = Promise.resolve();
  let startedAll = false;

  function add(component: LifecycleComponent): void {
    const tooLate = startedAll || stopping.signal.aborted;
    if (tooLate) throw new TypeError(`component added too late: ${component.name}`);
    components.push(component);
  }

  function start(): Promise<void> {
    starting ??= Promise.race([startAll(), rejectOnceStopped()]);
    return starting;
  }

  async function startAll(): Promise<void> {
    // The array itself, not a copy: a component may add further ones while it starts.
    for (const component of components) {
      if (stopping.signal.aborted) break;
      startingOne = startOne(component);
      await startingOne;
    }
    if (stopping.signal.aborted) await rejectOnceStopped();
    startedAll = true;
  }

  async function startOne(component: LifecycleComponent): Promise<void> {
    // Before its start has ended, so that a start that ignores the signal is followed by a stop all the same.
    started.push(component);
    try {
      await component.start?.({ signal: stopping.signal });
      logger.debug({ component: component.name }, 'component started');
    } catch (error) {
      const index = started.indexOf(component);
      if (index >= 0) started.splice(index, 1);
      if (!stopping.signal.aborted) void fail(`${component.name} did not start`, error);
    }
  }

  async function rejectOnceStopped(): Promise<never> {
    const { reason, failed, error } = await stopped.promise;
    throw failed ? error : new StoppedWhileStarting(`stopped while starting: ${reason}`);
  }

  function stop(reason: string): Promise<StopSummary> {
    if (!stopping.signal.aborted) {
      logger.info({ reason }, 'stopping');
      void beginStop({ reason, failed: false });
    }
    return stopped.promise;
  }

  function fail(reason: string, error: unknown): Promise<StopSummary> {
    if (stopping.signal.aborted) {
      logger.error({ reason, err: error ?? 'nothing was thrown' }, 'failure while stopping');
    } else {
      logger.fatal({ reason, err: error ?? 'nothing was thrown' }, 'stopping because of a failure');
      void beginStop({ reason, failed: true, error });
    }
    return stopped.promise;
  }

  async function beginStop(cause: Omit<StopSummary, 'late'>): Promise<void> {
    stopping.abort();
    stopped.resolve({ ...cause, late: await stopAll() });
  }

  async function stopAll(): Promise<string[]> {
    const drained = new AbortController();
    const deadline = new AbortController();
    void elapsed(drainTimeoutMs, drained.signal).then(() => deadline.abort());
    await settledOrLate(startingOne);
    const late: string[] = [];
    for (let component = started.pop(); component; component = started.pop()) {
      if (!(await stopOne(component, deadline.signal))) late.push(component.name);
    }
    drained.abort();
    return late;
  }

  async function settledOrLate(promise: Promise<void>): Promise<void> {
    const settled = new AbortController();
    await Promise.race([promise, elapsed(lateMs, settled.signal)]);
    settled.abort();
  }

  /** Answers whether the component stopped in time. */
  async function stopOne(component: LifecycleComponent, deadline: AbortSignal): Promise<boolean> {
    const done = new AbortController();
    // One of its own, aborted only after `stop` was called: a component may listen for the event alone.
    const cutOff = new AbortController();
    const stop = runStop(component, cutOff.signal).then(() => true);
    const patience = outOfTime(deadline, cutOff, done.signal).then(() => false);
    const inTime = await Promise.race([stop, patience]);
    done.abort();
    if (!inTime) logger.error({ component: component.name, drainTimeoutMs }, 'component not stopped in time');
    return inTime;
  }

  async function runStop(component: LifecycleComponent, signal: AbortSignal): Promise<void> {
    try {
      await component.stop?.({ signal });
      logger.debug({ component: component.name }, 'component stopped');
    } catch (err) {
      logger.error({ component: component.name, err }, 'component failed to stop');
    }
  }

  /** Cuts off at the deadline, and resolves a moment later: a component that obeys still ends in time. */
  async function outOfTime(deadline: AbortSignal, cutOff: AbortController, done: AbortSignal): Promise<void> {
    await aborted(deadline, done);
    cutOff.abort();
    await elapsed(lateMs, done);
  }

  /** Resolves after that time, or never when `cancel` aborts first. */
  async function elapsed(ms: number, cancel: AbortSignal): Promise<void> {
    try {
      await sleep(ms, cancel);
    } catch (error) {
      if (!cancel.aborted) throw error;
    }
    if (cancel.aborted) await new Promise<never>(() => undefined);
  }

  return {
    add,
    start,
    stop,
    fail,
    stopping: stopping.signal,
    stopped: stopped.promise,
  };
}

/** Resolves when `signal` aborts, or never when `cancel` aborts first. */
function aborted(signal: AbortSignal, cancel: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true, signal: cancel });
  });
}

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

/**
 * The component that is stopped first: it fails the health check, has HTTP servers close connections after their answers, and gives
 * load balancers `delayMs` to notice before the servers refuse new requests.
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
      if (delayMs > 0) {
        await delay(delayMs, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}
