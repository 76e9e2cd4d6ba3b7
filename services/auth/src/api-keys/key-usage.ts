import { RecentlyUsed } from '@tollgate/kit/collections';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import type { Schedule } from '@tollgate/kit/time';
import { maxBatchRows } from '../db/connection.ts';
import type { ApiKeyStore } from './store.ts';

/** A key is written at most once in this time. */
export const usePrecisionMs = 60_000;
const flushEveryMs = 10_000;
/** Keys that may wait for a flush, and whose last write is remembered. */
const maxKeys = 10_000;

/** Records when keys were used last, in batches. */
export class KeyUsage implements LifecycleComponent {
  readonly name = 'use of API keys';
  readonly #store: Pick<ApiKeyStore, 'recordUse'>;
  readonly #schedule: Schedule;
  readonly #failures: FailureLog;
  readonly #pending = new Map<string, number>();
  readonly #writtenAtMs = new RecentlyUsed<number>({ capacity: maxKeys });
  #flushing: Promise<void> = Promise.resolve();
  #cancel: (() => void) | undefined;
  #isStopped: boolean = false;

  constructor({
    store,
    schedule,
    logger,
  }: {
    readonly store: Pick<ApiKeyStore, 'recordUse'>;
    readonly schedule: Schedule;
    readonly logger: Logger;
  }) {
    this.#store = store;
    this.#schedule = schedule;
    this.#failures = new FailureLog({
      logger,
      message: 'failed to record the use of API keys',
      level: 'warn',
    });
  }

  /** Records a use, which the next flush writes. */
  record(keyId: string, nowMs: number): void {
    const writtenAtMs = this.#writtenAtMs.get(keyId);
    if (writtenAtMs !== undefined && nowMs - writtenAtMs < usePrecisionMs) return;
    if (this.#pending.has(keyId) || this.#pending.size >= maxKeys) return;
    this.#pending.set(keyId, nowMs);
    if (this.#pending.size === 1 && !this.#isStopped)
      this.#cancel = this.#schedule(flushEveryMs, () => void this.flush());
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
    const uses = [...this.#pending].map(([keyId, atMs]) => ({ keyId, at: new Date(atMs) }));
    this.#pending.clear();
    try {
      for (let start = 0; start < uses.length; start += maxBatchRows) {
        const batch = uses.slice(start, start + maxBatchRows);
        await this.#store.recordUse(batch);
        for (const { keyId, at } of batch) this.#writtenAtMs.set(keyId, at.getTime());
      }
    } catch (error) {
      this.#failures.log(error);
    }
  }
}
