import type { Steps } from '@tollgate/kit/time';
import type { ConfigObject, SourceEvent } from './source.ts';

/** A version of an object, as its source had it. */
interface ObjectVersion {
  readonly generation: number;
  /** When this process has read it, in Unix time. */
  readonly readMs: number;
  /** Whether it was accepted; undefined if it was replaced before it was evaluated. */
  readonly isAccepted: boolean | undefined;
  /** The manifest, which may have `status` and bookkeeping of the API server. */
  readonly manifest: unknown;
}

type Identity = Omit<ConfigObject, 'manifest' | 'stored'>;

/** An object, with its versions, the newest first. */
export interface ObjectHistory {
  readonly identity: Identity;
  readonly versions: readonly ObjectVersion[];
}

interface Newest extends Omit<ObjectVersion, 'isAccepted'> {
  isAccepted: boolean | undefined;
}

/** A version that was replaced, in JSON. */
interface Older extends Omit<ObjectVersion, 'manifest'> {
  readonly json: Buffer;
}

interface Known {
  identity: Identity;
  newest: Newest;
  /** The oldest first. */
  readonly older: Older[];
}

/** More than a person compares. */
const maxVersions = 10;

/** Bytes of all versions that were replaced: thousands of them, or some of the largest objects. */
const defaultMaxBytes = 16 * 1024 * 1024;

/**
 * Keeps the last versions of each object in memory. The newest one is the manifest of the source,
 * which has it in memory, too; of the others the oldest are dropped first, whatever their object.
 */
export class VersionHistory {
  readonly #nowMs: () => number;
  readonly #maxBytes: number;
  readonly #objects = new Map<string, Known>();
  /** Replaced versions with their objects, the oldest first. */
  readonly #replaced = new Map<Older, Known>();
  #bytes = 0;

  constructor({ nowMs, maxBytes }: { readonly nowMs: () => number; readonly maxBytes?: number }) {
    this.#nowMs = nowMs;
    this.#maxBytes = maxBytes ?? defaultMaxBytes;
  }

  find(id: string): ObjectHistory | undefined {
    const known = this.#objects.get(id);
    if (known === undefined) return undefined;
    const older = known.older.toReversed().map(
      ({ json, ...version }): ObjectVersion => ({
        ...version,
        get manifest() {
          return JSON.parse(json.toString());
        },
      }),
    );
    return { identity: known.identity, versions: [known.newest, ...older] };
  }

  /** Adds the versions of events, in order. The same events may be added again. */
  *add(events: readonly SourceEvent[]): Steps<void> {
    for (const event of events) {
      if (event.type === 'deleted') this.#forget(event.id);
      else if (event.type === 'changed') this.#put(event.object);
      else {
        const listed = new Set(event.objects.map(({ id }) => id));
        for (const id of [...this.#objects.keys()]) if (!listed.has(id)) this.#forget(id);
        for (const object of event.objects) {
          this.#put(object);
          yield;
        }
      }
    }
  }

  /** Sets whether the newest version was accepted. */
  evaluated(id: string, generation: number, isAccepted: boolean): void {
    const newest = this.#objects.get(id)?.newest;
    if (newest?.generation === generation) newest.isAccepted = isAccepted;
  }

  #put({ manifest, stored: _, ...identity }: ConfigObject): void {
    const { id, uid, generation } = identity;
    const known = this.#objects.get(id);
    const newest = { generation, readMs: this.#nowMs(), isAccepted: undefined, manifest };
    // An object that was deleted and created again has other versions with the same generations.
    if (known === undefined || known.identity.uid !== uid) {
      this.#forget(id);
      this.#objects.set(id, { identity, newest, older: [] });
      return;
    }
    if (known.newest.generation === generation) known.newest = { ...known.newest, manifest };
    else {
      this.#archive(known);
      known.newest = newest;
    }
    known.identity = identity;
  }

  #archive(known: Known): void {
    const { manifest, ...version } = known.newest;
    const older = { ...version, json: Buffer.from(JSON.stringify(manifest)) };
    known.older.push(older);
    this.#replaced.set(older, known);
    this.#bytes += older.json.length;
    if (known.older.length === maxVersions) this.#drop(known.older[0]);
    while (this.#bytes > this.#maxBytes) this.#drop(this.#replaced.keys().next().value);
  }

  #drop(older: Older | undefined): void {
    const known = older && this.#replaced.get(older);
    if (older === undefined || known === undefined) return;
    known.older.splice(known.older.indexOf(older), 1);
    this.#replaced.delete(older);
    this.#bytes -= older.json.length;
  }

  #forget(id: string): void {
    const known = this.#objects.get(id);
    for (const older of [...(known?.older ?? [])]) this.#drop(older);
    this.#objects.delete(id);
  }
}
