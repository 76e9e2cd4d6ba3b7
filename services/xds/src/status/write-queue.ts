export interface QueuedWrite {
  readonly id: string;
  readonly isEdit: boolean;
}

/** Objects whose status is to be written: those of edits first, whatever else is waiting. */
export class WriteQueue {
  /** When each is due, by id and in the order in which they were added. */
  readonly #edits = new Map<string, number>();
  readonly #others = new Map<string, number>();

  /** An object that is waiting already keeps its place and the earlier time. */
  add(id: string, { isEdit, dueMs }: { readonly isEdit: boolean; readonly dueMs: number }): void {
    const queue = isEdit || this.#edits.has(id) ? this.#edits : this.#others;
    const knownMs = this.#edits.get(id) ?? this.#others.get(id) ?? dueMs;
    if (queue === this.#edits) this.#others.delete(id);
    queue.set(id, Math.min(knownMs, dueMs));
  }

  delete(id: string): void {
    this.#edits.delete(id);
    this.#others.delete(id);
  }

  take(nowMs: number): QueuedWrite | undefined {
    for (const [id, dueMs] of this.#edits) if (dueMs <= nowMs) return this.#take(this.#edits, id);
    // Nearly in the order of their times: there may be thousands.
    const [next] = this.#others;
    return next !== undefined && next[1] <= nowMs ? this.#take(this.#others, next[0]) : undefined;
  }

  /** Undefined when it is empty. */
  nextDueMs(): number | undefined {
    let [nextMs] = this.#others.values();
    for (const dueMs of this.#edits.values()) nextMs = Math.min(nextMs ?? dueMs, dueMs);
    return nextMs;
  }

  #take(queue: Map<string, number>, id: string): QueuedWrite {
    queue.delete(id);
    return { id, isEdit: queue === this.#edits };
  }
}

/**
 * Statuses that the API server has refused, to be retried. A missing privilege affects a whole
 * namespace, so that one status per namespace is retried at a time, and the others follow once it
 * is written.
 */
export class RefusedStatuses {
  /** Objects by namespace, in the order of their retries. */
  readonly #refused = new Map<string, Set<string>>();
  readonly #delayAfter: (attempts: number) => number;
  readonly #retry: (id: string) => void;
  #timer: NodeJS.Timeout | undefined;
  #attempts = 0;

  constructor(options: {
    /** Delay after this number of refused attempts in a row. */
    readonly delayAfter: (attempts: number) => number;
    readonly retry: (id: string) => void;
  }) {
    this.#delayAfter = options.delayAfter;
    this.#retry = options.retry;
  }

  add(id: string): void {
    const namespace = getNamespace(id);
    const ids = this.#refused.get(namespace) ?? new Set();
    // It moves to the end, so that one object that is always refused does not block the others.
    ids.delete(id);
    this.#refused.set(namespace, ids.add(id));
  }

  /** The status was written, or need not be written any more. */
  remove(id: string): void {
    const namespace = getNamespace(id);
    const ids = this.#refused.get(namespace);
    if (ids?.delete(id) !== true) return;
    this.#refused.delete(namespace);
    for (const other of ids) this.#retry(other);
  }

  /** Schedules the next attempt; false when there is nothing to retry. */
  schedule(): boolean {
    if (this.#refused.size === 0) this.#attempts = 0;
    else if (this.#timer === undefined) {
      this.#attempts += 1;
      this.#timer = setTimeout(() => this.#retryEach(), this.#delayAfter(this.#attempts)).unref();
    }
    return this.#refused.size > 0;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#refused.clear();
  }

  #retryEach(): void {
    this.#timer = undefined;
    for (const [first] of this.#refused.values()) if (first !== undefined) this.#retry(first);
  }
}

const getNamespace = (id: string): string => id.slice(0, id.indexOf('/'));
