import type { SnapshotResource } from './snapshot.ts';

/** Resources by name, as far as a client has them. */
export type KnownResources = ReadonlyMap<string, { readonly version: string }>;

/** What makes one set of resources of another. */
export interface DeltaDiff {
  /** New, or of another version. */
  readonly changed: readonly SnapshotResource[];
  /** Names that are there no more. */
  readonly removed: readonly string[];
}

/** What makes `next` of what a client has. */
export function diffResources(known: KnownResources, next: ReadonlyMap<string, SnapshotResource>): DeltaDiff {
  if (known === next) return { changed: [], removed: [] };
  return {
    changed: [...next.values()].filter(({ name, version }) => known.get(name)?.version !== version),
    removed: [...known.keys()].filter((name) => !next.has(name)),
  };
}
