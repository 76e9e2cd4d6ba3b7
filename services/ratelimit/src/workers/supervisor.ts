import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { backoffDelays } from '@tollgate/kit/backoff';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow } from '@tollgate/kit/time';
import { mergeActivity } from '../decision/activity.ts';
import { statsNames } from '../metrics/names.ts';
import type { ProcessMetricValues } from '../metrics/prometheus.ts';
import type { Counter, StatsRegistry } from '../metrics/registry.ts';
import { formatStats } from '../metrics/text.ts';
import { createTrialReport } from '../trial/report.ts';
import { type StatsReport, StatsSums, type SummedPages } from './stats-report.ts';
import { type WorkerExit, WorkerProcess } from './worker-process.ts';

/** A worker that ends loses what it counted since its last report. */
const reportIntervalMs = 1000;
/** A busy worker is left out of a page or scrape after this time. */
const reportTimeoutMs = 1000;
/** Longer than loading 100,000 rules takes with a tenth of a core. */
const unresponsiveMs = 60_000;
/** A worker that ran for this long is restarted without the delay of earlier restarts. */
const stableMs = 60_000;
/** When one worker does not start, the others have this long to end. */
const startFailureDrainMs = 5000;
const restartDelayMs = backoffDelays({ initialMs: 100, maxMs: 30_000, jitter: 0.2 });

interface SupervisorOptions {
  readonly workers: number;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
  /** Single timings that workers keep for the sink. */
  readonly maxTimings: number;
}

/** Runs workers, replaces each that ends, and sums up their statistics. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #sums: StatsSums;
  readonly #restarts: Counter;
  /** The worker of each id, also while it restarts. */
  readonly #workers = new Map<number, WorkerProcess>();
  readonly #ended: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  #hasStarted: boolean = false;
  #reportTimer: NodeJS.Timeout | undefined;

  constructor(options: SupervisorOptions) {
    const { stats } = options;
    this.#options = options;
    this.#sums = new StatsSums(stats);
    this.#restarts = stats.counter(statsNames.workerRestarts);
    stats.gauge(statsNames.workersListening, () => this.#running().filter((w) => w.isListening).length);
  }

  /**
   * Starts all workers and resolves when they listen. They open their ports together, because
   * clients keep their connections: the first worker would get all of them.
   *
   * @throws Error when a worker ends before that.
   */
  async start({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    this.#reportTimer = setInterval(() => this.#onInterval(), reportIntervalMs).unref();
    const failed = Promise.withResolvers<never>();
    for (let id = 1; id <= this.#options.workers; id += 1) {
      this.#ended.push(
        this.#keepRunning(id, (exit) => failed.reject(new Error(`worker ${id} ended: ${describe(exit)}`))),
      );
    }
    const workers = this.#running();
    const startedAll = Promise.race([this.#listenTogether(workers), failed.promise]);
    try {
      await Promise.race([startedAll, aborted(signal)]);
      this.#hasStarted = !signal.aborted;
    } catch (error) {
      await this.stop('another worker did not start', { signal: AbortSignal.timeout(startFailureDrainMs) });
      throw error;
    }
  }

  /** Drains all workers; those left when `signal` aborts are killed. */
  async stop(reason: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const kill = () => this.#running().forEach((worker) => void worker.kill());
    signal.addEventListener('abort', kill, { once: true });
    if (signal.aborted) kill();
    this.#stopping.abort();
    for (const worker of this.#running()) worker.stop(reason);
    await Promise.all(this.#ended);
    clearInterval(this.#reportTimer);
    signal.removeEventListener('abort', kill);
  }

  /** Updates the sums, and resolves with the process metrics of the workers. */
  async collect({
    processMetrics,
  }: {
    readonly processMetrics: boolean;
  }): Promise<readonly ProcessMetricValues[]> {
    const reports = await this.#requestReports({ processMetrics, activity: false });
    return reports.map((report) => report.processMetrics).filter((metrics) => metrics !== undefined);
  }

  /** Resolves with the reports of workers that are not too busy, after they were added up. */
  async #requestReports(wanted: {
    readonly processMetrics: boolean;
    readonly activity: boolean;
  }): Promise<readonly StatsReport[]> {
    const { maxTimings } = this.#options;
    const timeout = AbortSignal.timeout(reportTimeoutMs);
    const late = new Promise<undefined>((resolve) => {
      timeout.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    const reports = await Promise.all(
      this.#running().map((worker) => Promise.race([worker.requestReport({ maxTimings, ...wanted }), late])),
    );
    return reports.filter((report) => report !== undefined);
  }

  /** The worker of the lowest id that runs serves a connection to the debug port. */
  serveDebug(socket: Socket): void {
    const [worker] = this.#running();
    if (worker === undefined) socket.destroy();
    else worker.serveDebug(socket);
  }

  async #listenTogether(workers: readonly WorkerProcess[]): Promise<void> {
    await Promise.all(workers.map(({ ready }) => ready));
    for (const worker of workers) worker.listen();
    await Promise.all(workers.map(({ listening }) => listening));
  }

  #running(): WorkerProcess[] {
    return [...this.#workers.values()].filter(({ isRunning }) => isRunning);
  }

  #onInterval(): void {
    void this.collect({ processMetrics: false });
    for (const worker of this.#running()) {
      if (worker.waitingMs < unresponsiveMs) continue;
      this.#options.logger.error(
        { worker: worker.id, waitingMs: worker.waitingMs },
        'killing unresponsive worker',
      );
      worker.kill();
    }
  }

  /** Runs the worker of that id, and the next after it, until the stop or a failed start. */
  async #keepRunning(id: number, onStartFailure: (exit: WorkerExit) => void): Promise<void> {
    for (let failures = 0; ; ) {
      const worker = this.#fork(id);
      const exit = await worker.exited;
      this.#sums.remove(id);
      if (this.#stopping.signal.aborted) return;
      if (!this.#hasStarted) {
        onStartFailure(exit);
        return;
      }
      failures = monotonicNow() - worker.startedMs > stableMs ? 1 : failures + 1;
      await this.#waitForRestart(worker, exit, restartDelayMs(failures));
      if (this.#stopping.signal.aborted) return;
    }
  }

  async #waitForRestart({ id, pid }: WorkerProcess, exit: WorkerExit, delayMs: number): Promise<void> {
    this.#restarts.value += 1;
    this.#options.logger.error(
      { worker: id, pid, exit: describe(exit), delayMs: Math.round(delayMs) },
      'worker ended, restarting it',
    );
    await delay(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }

  async #getPage(page: keyof SummedPages): Promise<SummedPages[keyof SummedPages]> {
    const reports = await this.#requestReports({ processMetrics: false, activity: page === 'activity' });
    const { stats } = this.#options;
    switch (page) {
      case 'activity':
        return mergeActivity(reports.flatMap(({ activity }) => activity ?? []));
      case '/stats':
        return formatStats(stats);
      case '/trial':
        return createTrialReport(stats);
    }
  }

  #fork(id: number): WorkerProcess {
    const worker = new WorkerProcess(id, {
      onReport: (report: StatsReport) => this.#sums.add(id, report),
      getPage: (page) => this.#getPage(page),
    });
    this.#options.logger.info({ worker: id, pid: worker.pid }, 'worker started');
    this.#workers.set(id, worker);
    if (this.#hasStarted) void worker.ready.then(() => worker.listen());
    return worker;
  }
}

function describe({ code, signal, error }: WorkerExit): string {
  return error?.message ?? (signal === null ? `exit code ${code}` : signal);
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
