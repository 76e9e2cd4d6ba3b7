import { Socket } from 'node:net';
import type { ActivityReport } from '../decision/activity.ts';
import type { ProcessMetricValues } from '../metrics/prometheus.ts';
import type { StatsRegistry } from '../metrics/registry.ts';
import type { SummedPages, WorkerMessage, WorkerRequest } from './stats-report.ts';
import { StatsReporter } from './stats-report.ts';

/** The part of `process` that a worker uses to talk to its supervisor. */
export interface ParentProcess {
  send?(message: WorkerMessage, callback: (error: Error | null) => void): boolean;
  on(event: 'message', listener: (message: WorkerRequest, handle: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
}

/** Requests of the supervisor to a worker. */
export interface WorkerHandlers {
  readonly stats: StatsRegistry;
  onStop(reason: string): void;
  onDebugConnection(socket: Socket): void;
  getProcessMetrics(): Promise<ProcessMetricValues | undefined>;
  getActivity(): ActivityReport | undefined;
}

/** The supervisor, seen from a worker. */
export class SupervisorLink {
  readonly #parent: ParentProcess;
  readonly #listen = Promise.withResolvers<void>();
  readonly #pages = new Map<number, (content: SummedPages[keyof SummedPages]) => void>();
  #reporter: StatsReporter | undefined;
  #handlers: WorkerHandlers | undefined;
  #nextPage = 1;

  constructor(parent: ParentProcess) {
    this.#parent = parent;
  }

  /** Handles requests from now on; earlier ones are handled, too. */
  connect(handlers: WorkerHandlers): void {
    this.#handlers = handlers;
    this.#reporter = new StatsReporter(handlers.stats);
    // Node keeps messages until there is a listener.
    this.#parent.on('message', (request, handle) => void this.#handle(request, handle));
    this.#parent.on('disconnect', () => handlers.onStop('the supervisor has ended'));
  }

  /** Resolves when the supervisor wants the ports to be opened, or when `signal` aborts. */
  async waitForListen(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#listen.resolve(), { once: true });
    await this.#send({ kind: 'ready' });
    if (!signal.aborted) await this.#listen.promise;
  }

  announceListening(): Promise<void> {
    return this.#send({ kind: 'listening' });
  }

  getPage<Page extends keyof SummedPages>(page: Page): Promise<SummedPages[Page]> {
    return new Promise((resolve) => {
      const id = this.#nextPage;
      this.#nextPage += 1;
      // The answer to this id is of this page.
      this.#pages.set(id, (content) => resolve(content as SummedPages[Page]));
      void this.#send({ kind: 'page', id, page });
    });
  }

  /** Sends the last report. Resolves when the system has it, or when the supervisor has ended. */
  async reportFinally(): Promise<void> {
    const report = this.#reporter?.take();
    if (report !== undefined) await this.#send({ kind: 'report', report });
  }

  async #handle(request: WorkerRequest, handle: unknown): Promise<void> {
    const handlers = this.#handlers;
    if (handlers === undefined) return;
    switch (request.kind) {
      case 'listen':
        this.#listen.resolve();
        break;
      case 'report':
        await this.#report(request, handlers);
        break;
      case 'page':
        this.#pages.get(request.id)?.(request.content);
        this.#pages.delete(request.id);
        break;
      case 'debug connection':
        // Undefined when the client has closed the connection meanwhile.
        if (handle instanceof Socket) handlers.onDebugConnection(handle);
        break;
      case 'stop':
        handlers.onStop(request.reason);
    }
  }

  async #report(
    { id, maxTimings, ...wanted }: Extract<WorkerRequest, { kind: 'report' }>,
    { stats, getProcessMetrics, getActivity }: WorkerHandlers,
  ): Promise<void> {
    stats.keepTimings(maxTimings);
    const processMetrics = wanted.processMetrics ? await getProcessMetrics() : undefined;
    const report = this.#reporter?.take();
    if (report === undefined) return;
    const activity = wanted.activity ? getActivity() : undefined;
    await this.#send({ kind: 'report', id, report: { ...report, processMetrics, activity } });
  }

  #send(message: WorkerMessage): Promise<void> {
    return new Promise((resolve) => {
      // Without a channel, the message is lost: 'disconnect' stops this worker.
      if (this.#parent.send === undefined) resolve();
      else this.#parent.send(message, () => resolve());
    });
  }
}
