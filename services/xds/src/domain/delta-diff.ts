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

/** Says whether two differences are the same, told by names and versions; their order does not matter. */
export function sameDiff(one: DeltaDiff, other: DeltaDiff): boolean {
  if (one.changed.length !== other.changed.length || one.removed.length !== other.removed.length)
    return false;
  const versions = new Map(one.changed.map(({ name, version }) => [name, version]));
  const removed = new Set(one.removed);
  return (
    other.changed.every(({ name, version }) => versions.get(name) === version) &&
    other.removed.every((name) => removed.has(name))
  );
}
