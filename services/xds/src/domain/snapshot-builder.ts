import { compareText } from '@tollgate/kit/text';
import type { Snapshot, SnapshotResource } from './snapshot.ts';

/** Builds one snapshot after the other; those that were handed out never change. */
export interface SnapshotBuilder {
  /** Sets the encoded rules of a domain. */
  put(name: string, any: Uint8Array): void;
  remove(name: string): void;
  /** Everything as it is now; the same object as last time when nothing has changed. */
  build(): Snapshot;
}

/** Makes one that has nothing. `hash` answers hexadecimal. */
export function createSnapshotBuilder(hash: (content: Uint8Array | string) => string): SnapshotBuilder {
  let resources = new Map<string, SnapshotResource>();
  /** Present in `resources`, and perhaps not at the place where its name belongs. */
  let isSorted = true;
  let last: Snapshot | undefined;

  return {
    put(name, any) {
      const version = hash(any);
      const known = resources.get(name);
      if (known?.version === version) return;
      forkIfShown();
      if (known === undefined) isSorted = false;
      resources.set(name, { name, version, any });
    },
    remove(name) {
      if (!resources.has(name)) return;
      forkIfShown();
      resources.delete(name);
    },
    build() {
      if (last !== undefined && last.resources === resources) return last;
      if (!isSorted) resources = new Map([...resources].sort(([a], [b]) => compareText(a, b)));
      isSorted = true;
      last = { version: hash(contentOf(resources)), resources };
      return last;
    },
  };

  /** What is in a snapshot belongs to it: changes go to a copy. */
  function forkIfShown(): void {
    if (last?.resources === resources) resources = new Map(resources);
  }
}

/** Names and versions as one text. The lengths keep apart what a name could otherwise pretend to be. */
function contentOf(resources: ReadonlyMap<string, SnapshotResource>): string {
  let content = '';
  for (const { name, version } of resources.values()) content += `${name.length}:${name}${version}`;
  return content;
}
