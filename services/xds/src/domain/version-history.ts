import type { Snapshot } from './snapshot.ts';

/** Versions by domain, of one snapshot. */
export type DomainVersions = ReadonlyMap<string, string>;

/** What the last snapshots consisted of. */
export interface VersionHistory {
  add(snapshot: Snapshot): void;
  /** Of the snapshot of that version; undefined when there was none, or it was long ago. */
  get(version: string): DomainVersions | undefined;
}

/** A replica that has another one than the latest has one of the last few. */
const maxSnapshots = 64;

/** Versions in all, of 100 bytes at most: with 10,000 domains the last twenty snapshots. */
const maxVersions = 200_000;

/** Makes one that knows of none. Keys and values are shared with the snapshots; the encoded rules are not kept. */
export function createVersionHistory(): VersionHistory {
  /** The oldest first. */
  const history = new Map<string, DomainVersions>();
  let size = 0;

  function remove(version: string): void {
    size -= history.get(version)?.size ?? 0;
    history.delete(version);
  }

  return {
    add({ version, resources }) {
      remove(version);
      const versions = new Map([...resources.values()].map((resource) => [resource.name, resource.version]));
      history.set(version, versions);
      size += versions.size;
      for (const oldest of history.keys()) {
        if (oldest === version || (history.size <= maxSnapshots && size <= maxVersions)) break;
        remove(oldest);
      }
    },
    get: (version) => history.get(version),
  };
}
