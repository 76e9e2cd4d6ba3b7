import { RecentlyUsed } from '@tollgate/kit/collections';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import type { Schedule } from '@tollgate/kit/time';
import { maxBatchRows } from './connection.ts';

/** A use is written at most once in this time. */
export const usePrecisionMs = 60_000;
const flushEveryMs = 10_000;
/** Ids that may wait for a flush, and whose last write is remembered. */
const maxIds = 10_000;

/** When a row was used. */
export interface Use {
  readonly id: string;
  readonly at: Date;
}

interface UseStore {
  recordUse(uses: readonly Use[]): Promise<void>;
}

/** Records when rows were used last, in batches. */
export class Usage implements LifecycleComponent {
  readonly name: string;
  readonly #store: UseStore;
  readonly #precisionMs: number;
  readonly #schedule: Schedule;
  readonly #failures: FailureLog;
  readonly #pending = new Map<string, number>();
  readonly #writtenAtMs = new RecentlyUsed<number>({ capacity: maxIds });
  #flushing: Promise<void> = Promise.resolve();
  #cancel: (() => void) | undefined;
  #isStopped: boolean = false;

  /** @param name what is used, such as `API keys` */
  constructor(
    name: string,
    {
      store,
      schedule,
      logger,
      precisionMs = usePrecisionMs,
    }: {
      readonly store: UseStore;
      readonly schedule: Schedule;
      readonly logger: Logger;
      /** Default {@link usePrecisionMs}. */
      readonly precisionMs?: number;
    },
  ) {
    this.name = `use of ${name}`;
    this.#store = store;
    this.#precisionMs = precisionMs;
    this.#schedule = schedule;
    this.#failures = new FailureLog({ logger, message: `failed to record the ${this.name}`, level: 'warn' });
  }

  /** Records a use, which the next flush writes. */
  record(id: string, nowMs: number): void {
    const writtenAtMs = this.#writtenAtMs.get(id);
    if (writtenAtMs !== undefined && nowMs - writtenAtMs < this.#precisionMs) return;
    if (this.#pending.has(id) || this.#pending.size >= maxIds) return;
    this.#pending.set(id, nowMs);
    if (this.#pending.size === 1 && !this.#isStopped)
      this.#cancel = this.#schedule(Math.min(flushEveryMs, this.#precisionMs), () => void this.flush());
  }

  /** Writes all recorded uses. Never rejects: the next use is written later. */
  flush(): Promise<void> {
    this.#cancel?.();
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.flush();
  }

  async #write(): Promise<void> {
    const uses = [...this.#pending].map(([id, atMs]) => ({ id, at: new Date(atMs) }));
    this.#pending.clear();
    try {
      for (let start = 0; start < uses.length; start += maxBatchRows) {
        const batch = uses.slice(start, start + maxBatchRows);
        await this.#store.recordUse(batch);
        for (const { id, at } of batch) this.#writtenAtMs.set(id, at.getTime());
      }
    } catch (error) {
      this.#failures.log(error);
    }
  }
}
