import type { Logger } from '@tollgate/kit/logger';
import { maxTimerMs, type Schedule } from '@tollgate/kit/time';
import { PendingEvents } from './catalog/pending-events.ts';
import type { SourceEvent } from './catalog/source.ts';

interface BatchOptions {
  readonly logger: Logger;
  readonly schedule: Schedule;
  /** Events are collected for this time before they are applied together. */
  readonly debounceMs: number;
  /** The next batch begins when it resolves. Its events come again if it rejects. */
  readonly apply: (events: readonly SourceEvent[]) => Promise<void>;
  /** Delays after which a batch without events is due. Called after each batch. */
  readonly dueInMs: () => readonly (number | undefined)[];
}

/** A batch that failed may fail again. */
const retryMs = 5_000;

/** Applies the events of a source in batches, one after the other. */
export class Batches {
  readonly #options: BatchOptions;
  readonly #pending = new PendingEvents();
  /** Events of the batch being applied. */
  #applying = new PendingEvents();
  #cancelBatch: (() => void) | undefined;
  /** Timers of batches without events. */
  #cancelTimers: (() => void)[] = [];
  /** The batch being applied. */
  #batch: Promise<void> | undefined;
  #closed: boolean = false;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  add(event: SourceEvent): void {
    this.#pending.add(event);
    this.#scheduleEvents(this.#options.debounceMs);
  }

  /** Whether the last event of an object is its deletion; undefined without an event. */
  isDeleted(id: string): boolean | undefined {
    return this.#pending.isDeleted(id) ?? this.#applying.isDeleted(id);
  }

  /** Plans a batch, also without events. */
  schedule(delayMs: number): void {
    if (this.#closed) return;
    const cancel = this.#options.schedule(Math.min(Math.max(0, delayMs), maxTimerMs), () => {
      // A batch in progress schedules it again.
      if (!this.#closed && this.#batch === undefined) this.#batch = this.#apply();
    });
    this.#cancelTimers.push(cancel);
  }

  /** Begins no further batch. */
  stop(): void {
    this.#closed = true;
    this.#cancelBatch?.();
    this.#clearTimers();
  }

  /** Resolves when the batch being applied has ended. */
  async settled(): Promise<void> {
    await this.#batch;
  }

  /** The delay starts with the first event; further events do not extend it. */
  #scheduleEvents(delayMs: number): void {
    if (this.#closed || this.#batch !== undefined || this.#pending.isEmpty) return;
    this.#cancelBatch ??= this.#options.schedule(delayMs, () => {
      this.#cancelBatch = undefined;
      this.#batch = this.#apply();
    });
  }

  async #apply(): Promise<void> {
    const { logger, debounceMs, apply, dueInMs } = this.#options;
    const events = this.#pending.take();
    for (const event of events) this.#applying.add(event);
    let failed = false;
    try {
      await apply(events);
    } catch (error) {
      // A bug, or out of memory: what is served stays, and no event is lost.
      logger.error({ err: error, events: events.length, retryMs }, 'failed to apply changes, retrying');
      this.#pending.putBack(events);
      failed = true;
    }
    this.#applying = new PendingEvents();
    this.#batch = undefined;
    this.#clearTimers();
    for (const delayMs of dueInMs()) if (delayMs !== undefined) this.schedule(delayMs);
    if (failed && this.#pending.isEmpty) this.schedule(retryMs);
    this.#scheduleEvents(failed ? retryMs : debounceMs);
  }

  #clearTimers(): void {
    for (const cancel of this.#cancelTimers) cancel();
    this.#cancelTimers = [];
  }
}
