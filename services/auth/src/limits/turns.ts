/** Running and waiting work of a key, and the end of the last one. */
interface Turn {
  works: number;
  end: Promise<void>;
}

/** Waiting works of a key. */
const maxWaiting = 50;

/** Runs works of the same key one after the other. */
export class Turns {
  readonly #turns = new Map<string, Turn>();

  /** Whether no more work may wait for this key. */
  isFull(key: string): boolean {
    // One of them is running.
    return (this.#turns.get(key)?.works ?? 0) > maxWaiting;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(key) ?? { works: 0, end: Promise.resolve() };
    this.#turns.set(key, turn);
    turn.works++;
    const previousEnd = turn.end;
    const { promise, resolve: end } = Promise.withResolvers<void>();
    turn.end = promise;
    try {
      await previousEnd;
      return await work();
    } finally {
      end();
      if (--turn.works === 0) this.#turns.delete(key);
    }
  }
}
