/** A part of a service whose state counts toward the health of the process. */
export type HealthComponent = { set(healthy: boolean): void };

/** Called with the overall health after it has changed. */
type HealthListener = (healthy: boolean) => void;

/** Health of a process: healthy when all its components are. */
export class Health {
  readonly #states = new Map<string, boolean>();
  readonly #listeners = new Set<HealthListener>();
  #healthy: boolean = true;

  /** Registers a component. Throws when the name is taken. */
  component(name: string, { healthy }: { readonly healthy: boolean }): HealthComponent {
    if (this.#states.has(name)) throw new TypeError(`health component exists: ${name}`);
    this.#record(name, healthy);
    return { set: (value) => this.#record(name, value) };
  }

  isHealthy(): boolean {
    return this.#healthy;
  }

  /**
   * Calls the listener after each change of the overall health, until the returned function is
   * called.
   */
  onChange(listener: HealthListener): () => void {
    // Wrapped, so that a function registered twice is two listeners.
    const own: HealthListener = (healthy) => listener(healthy);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  report(): Record<string, boolean> {
    return Object.fromEntries(this.#states);
  }

  #record(name: string, healthy: boolean): void {
    this.#states.set(name, healthy);
    const next = [...this.#states.values()].every(Boolean);
    if (next === this.#healthy) return;
    this.#healthy = next;
    for (const listener of [...this.#listeners]) listener(next);
  }
}
