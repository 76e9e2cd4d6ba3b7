import type { Snapshot } from '../domain/snapshot.ts';

/** The snapshot in force, and who wants to hear of the next one. */
export interface SnapshotStore {
  /** Undefined until the source has synced: nothing is served before. */
  current(): Snapshot | undefined;
  /** Puts a snapshot in force; one of the same version changes nothing and is told to nobody. */
  set(snapshot: Snapshot): void;
  /** Calls the listener with each new snapshot, until the returned function is called. */
  onChange(listener: (snapshot: Snapshot) => void): () => void;
}

/** Makes an empty store. */
export function createSnapshotStore(): SnapshotStore {
  const listeners = new Set<(snapshot: Snapshot) => void>();
  let current: Snapshot | undefined;
  return {
    current: () => current,
    set(snapshot) {
      if (snapshot.version === current?.version) return;
      current = snapshot;
      for (const listener of [...listeners]) listener(snapshot);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
