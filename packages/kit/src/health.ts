/** One part of a service whose state counts toward the whole. */
export type HealthComponent = { set(healthy: boolean): void };

/** Called with the overall health, only when it has changed. */
type HealthListener = (healthy: boolean) => void;

/** Health of a process: the conjunction of its components. */
export type Health = {
  /** Registers a component in its first state. Throws when the name is taken. */
  component(name: string, initial: { readonly healthy: boolean }): HealthComponent;
  isHealthy(): boolean;
  /** Calls the listener at each change of the overall health, until the returned function is called. */
  onChange(listener: HealthListener): () => void;
  report(): Record<string, boolean>;
};

/** Creates a health record without components, which is healthy. */
export function createHealth(): Health {
  const states = new Map<string, boolean>();
  const listeners = new Set<HealthListener>();
  let overall = true;

  function record(name: string, healthy: boolean): void {
    states.set(name, healthy);
    const next = [...states.values()].every(Boolean);
    if (next === overall) return;
    overall = next;
    for (const listener of [...listeners]) listener(next);
  }

  return {
    component(name, { healthy }) {
      if (states.has(name)) throw new TypeError(`health component exists: ${name}`);
      record(name, healthy);
      return { set: (value) => record(name, value) };
    },
    isHealthy: () => overall,
    onChange(listener) {
      // A wrapper of its own, so that one function registered twice is two listeners.
      const own: HealthListener = (healthy) => listener(healthy);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    report: () => Object.fromEntries(states),
  };
}
