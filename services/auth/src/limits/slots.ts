/** Slots of a key, of which each work takes one. */
export interface SlotBound {
  readonly key: string;
  readonly max: number;
}

/** Bounds the works that run at the same time, by several keys at once. */
export class Slots {
  readonly #taken = new Map<string, number>();

  /** Runs work while a slot of each key is taken. Undefined: a key has none that is free. */
  run<T>(bounds: readonly SlotBound[], work: () => Promise<T>): Promise<T> | undefined {
    if (bounds.some(({ key, max }) => this.#count(key) >= max)) return undefined;
    for (const { key } of bounds) this.#taken.set(key, this.#count(key) + 1);
    return work().finally(() => {
      for (const { key } of bounds) this.#release(key);
    });
  }

  #count(key: string): number {
    return this.#taken.get(key) ?? 0;
  }

  #release(key: string): void {
    const left = this.#count(key) - 1;
    if (left > 0) this.#taken.set(key, left);
    else this.#taken.delete(key);
  }
}
