import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { monotonicNow } from '@tollgate/kit/time';
import type { StatsReport, SummedPages, WorkerMessage, WorkerRequest } from './stats-report.ts';

const program = new URL('../cli/worker.ts', import.meta.url);

/** How a worker ended; `error` when it could not be started at all. */
export interface WorkerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

interface WorkerEvents {
  onReport(report: StatsReport): void;
  getPage(page: keyof SummedPages): Promise<SummedPages[keyof SummedPages]>;
}

type State = 'starting' | 'ready' | 'listening' | 'exited';

/** A worker, seen from the supervisor. */
export class WorkerProcess {
  readonly id: number;
  readonly startedMs = monotonicNow();
  /** Resolves when it waits for `listen`; never when it ends before. */
  readonly ready: Promise<void>;
  /** Resolves when it accepts connections; never when it ends before. */
  readonly listening: Promise<void>;
  /** Resolves when it has ended and its last report was read. */
  readonly exited: Promise<WorkerExit>;
  readonly #child: ChildProcess;
  readonly #events: WorkerEvents;
  /** Requested reports, the oldest first. */
  readonly #requests = new Map<
    number,
    { readonly sentMs: number; readonly done: (report: StatsReport | undefined) => void }
  >();
  #nextRequest = 1;
  #state: State = 'starting';

  constructor(id: number, events: WorkerEvents) {
    this.id = id;
    this.#events = events;
    this.#child = fork(program, [String(id)], { serialization: 'advanced' });
    const ready = Promise.withResolvers<void>();
    const listening = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.listening = listening.promise;
    this.#child.on('message', (message: WorkerMessage) => {
      if (message.kind === 'report') this.#onReport(message.report, message.id);
      else if (message.kind === 'page') void this.#sendPage(message);
      else {
        this.#state = message.kind;
        (message.kind === 'ready' ? ready : listening).resolve();
      }
    });
    this.exited = this.#waitForExit();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#state !== 'exited';
  }

  get isListening(): boolean {
    return this.#state === 'listening';
  }

  /** How long the oldest request has been without an answer. */
  get waitingMs(): number {
    const [oldest] = this.#requests.values();
    return oldest === undefined ? 0 : monotonicNow() - oldest.sentMs;
  }

  listen(): void {
    this.#send({ kind: 'listen' });
  }

  stop(reason: string): void {
    this.#send({ kind: 'stop', reason });
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Resolves with the report, after `onReport`; with undefined when the worker ends. */
  requestReport(options: {
    readonly maxTimings: number;
    readonly processMetrics: boolean;
    readonly activity: boolean;
  }): Promise<StatsReport | undefined> {
    if (!this.isRunning) return Promise.resolve(undefined);
    return new Promise((done) => {
      const id = this.#nextRequest;
      this.#nextRequest += 1;
      this.#requests.set(id, { sentMs: monotonicNow(), done });
      this.#send({ kind: 'report', id, ...options });
    });
  }

  /** Hands over a connection; closes it when that fails. */
  serveDebug(socket: Socket): void {
    const request: WorkerRequest = { kind: 'debug connection' };
    this.#child.send(request, socket, {}, (error) => {
      if (error) socket.destroy();
    });
  }

  /** A worker that ended meanwhile does not get it; `exited` tells. */
  #send(request: WorkerRequest): void {
    if (this.#child.connected) this.#child.send(request, () => undefined);
  }

  #onReport(report: StatsReport, id?: number): void {
    this.#events.onReport(report);
    if (id === undefined) return;
    this.#requests.get(id)?.done(report);
    this.#requests.delete(id);
  }

  async #sendPage({ id, page }: Extract<WorkerMessage, { kind: 'page' }>): Promise<void> {
    this.#send({ kind: 'page', id, content: await this.#events.getPage(page) });
  }

  async #waitForExit(): Promise<WorkerExit> {
    const child = this.#child;
    // The last report may be read after 'exit', but not after 'disconnect'.
    const disconnected = new Promise<void>((resolve) => child.once('disconnect', resolve));
    const exit = await new Promise<WorkerExit>((resolve) => {
      child.once('exit', (code, signal) => {
        void disconnected.then(() => resolve({ code, signal }));
      });
      // Emitted without 'exit' when there is no process.
      child.on('error', (error) => {
        if (child.pid === undefined) resolve({ code: null, signal: null, error });
      });
    });
    this.#state = 'exited';
    for (const { done } of this.#requests.values()) done(undefined);
    this.#requests.clear();
    return exit;
  }
}
