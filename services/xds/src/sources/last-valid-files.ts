import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { toTexts } from '../catalog/stored-version.ts';
import type { PolicyReporter } from '../policies/policy-result.ts';
import type { ManifestObject } from './manifests.ts';

export interface LastValidFilesOptions {
  readonly logger: Logger;
  readonly directory: string;
}

/** Finds the current manifest of an object. */
type FindObject = (id: string) => ManifestObject | undefined;

interface StoredObject {
  readonly id: string;
  /** Undefined when there is none. */
  readonly lastValid?: { readonly spec: unknown } | undefined;
  /** @see ConfigObject.allowedHosts */
  readonly allowedHosts?: readonly string[];
}

/** Delay after a failed write. */
const retryMs = 5_000;

/**
 * Stores the last valid version of each object of a folder as a file, so that it stays in force
 * after a restart. Files are replaced atomically. Failures are logged and retried, and never block
 * the service.
 */
export class LastValidFiles {
  readonly #options: LastValidFilesOptions;
  /** SHA-256 of the content of each file, by id. */
  readonly #stored = new Map<string, string>();
  /** Contents to be written, by id; undefined to remove the file. */
  readonly #due = new Map<string, string | undefined>();
  #find: FindObject = () => undefined;
  #writing: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #problem: string | undefined;

  constructor(options: LastValidFilesOptions) {
    this.#options = options;
  }

  /**
   * Returns the stored objects, and whether these are all: damaged files are logged and skipped.
   *
   * @throws Error when the directory cannot be used.
   */
  async load(
    find: FindObject,
  ): Promise<{ readonly objects: readonly ManifestObject[]; readonly areAll: boolean }> {
    this.#find = find;
    const { directory } = this.#options;
    const names = await this.#prepare();
    const objects: ManifestObject[] = [];
    let areAll = true;
    for (const name of names) {
      const file = join(directory, name);
      // Left by a write that a crash interrupted.
      if (name.endsWith('.tmp')) await rm(file, { force: true });
      if (!name.endsWith('.json')) continue;
      try {
        const text = await readFile(file, 'utf8');
        const object = parseStored(text, name);
        this.#stored.set(object.id, digest(text));
        objects.push(object);
      } catch (error) {
        const reason = getErrorMessage(error);
        this.#options.logger.warn({ file, reason }, 'ignored a damaged copy of a last valid version');
        areAll = false;
      }
    }
    return { objects, areAll };
  }

  /** Removes the files of objects that were deleted while the service did not run. */
  prune(present: ReadonlySet<string>): void {
    for (const id of this.#stored.keys()) if (!present.has(id)) this.forget(id);
  }

  /** Stores the last valid version if it has changed. */
  put({ id, lastValid, allowedHosts }: StoredObject): void {
    const object = this.#find(id);
    if (lastValid === undefined || object === undefined) return;
    const { manifest, ...identity } = object;
    const restored = { ...(typeof manifest === 'object' ? manifest : undefined), spec: lastValid.spec };
    const text = JSON.stringify({ ...identity, manifest: restored, allowedHosts });
    if (this.#stored.get(id) === digest(text)) this.#due.delete(id);
    else this.#enqueue(id, text);
  }

  /** Removes the file of a deleted object. */
  forget(id: string): void {
    this.#enqueue(id, undefined);
  }

  /** Stores access policies. */
  readonly policies: PolicyReporter = {
    put: ({ id, inForce, allowedHosts }) => this.put({ id, lastValid: inForce, allowedHosts }),
    forget: (id) => this.forget(id),
  };

  /** Resolves when everything is written that can be. */
  async close(): Promise<void> {
    clearTimeout(this.#retry);
    await this.#writing;
    await this.#writeDue();
    clearTimeout(this.#retry);
  }

  async #prepare(): Promise<readonly string[]> {
    const { directory } = this.#options;
    try {
      await mkdir(directory, { recursive: true });
      const probe = join(directory, 'probe.tmp');
      await writeAtomically(probe, '');
      await rm(probe);
      return (await readdir(directory)).sort();
    } catch (error) {
      const reason = getErrorMessage(error);
      throw new Error(
        `the folder of last valid versions ${directory} cannot be used: ${reason}: set XDS_DATA_FOLDER to a directory that this process may write`,
      );
    }
  }

  #enqueue(id: string, text: string | undefined): void {
    this.#due.set(id, text);
    this.#write();
  }

  #write(): void {
    this.#writing ??= this.#writeDue().finally(() => {
      this.#writing = undefined;
    });
  }

  async #writeDue(): Promise<void> {
    for (let next = this.#nextDue(); next !== undefined; next = this.#nextDue()) {
      const [id, text] = next;
      const file = join(this.#options.directory, fileName(id));
      try {
        if (text === undefined) await rm(file, { force: true });
        else await writeAtomically(file, text);
      } catch (error) {
        this.#handleFailure(error, file);
        return;
      }
      this.#problem = undefined;
      if (text === undefined) this.#stored.delete(id);
      else this.#stored.set(id, digest(text));
      // A newer content may have been added meanwhile.
      if (this.#due.get(id) === text) this.#due.delete(id);
    }
  }

  #nextDue(): readonly [string, string | undefined] | undefined {
    const [first] = this.#due;
    return first;
  }

  #handleFailure(error: unknown, file: string): void {
    const reason = getErrorMessage(error);
    if (reason !== this.#problem)
      this.#options.logger.warn({ file, reason, retryMs }, 'cannot store a last valid version, retrying');
    this.#problem = reason;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#write(), retryMs).unref();
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Names of objects may be longer than those of files. */
const fileName = (id: string): string => `${digest(id)}.json`;

/** Either the former content or the new one survives a crash. */
async function writeAtomically(file: string, text: string): Promise<void> {
  const unfinished = `${file}.tmp`;
  const handle = await open(unfinished, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(unfinished, file);
}

/** @throws Error for anything that this class has not written. */
function parseStored(text: string, name: string): ManifestObject {
  const value: unknown = JSON.parse(text);
  const read = (key: string): string => {
    const field: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
    if (typeof field !== 'string') throw new Error(`${key} is missing`);
    return field;
  };
  const id = read('id');
  if (fileName(id) !== name) throw new Error(`is not the file of ${id}`);
  return {
    id,
    namespace: read('namespace'),
    name: read('name'),
    uid: id,
    createdMs: 0,
    order: read('order'),
    label: read('label'),
    // `read` has verified that it is an object.
    manifest: Reflect.get(Object(value), 'manifest'),
    allowedHosts: toTexts(Reflect.get(Object(value), 'allowedHosts')),
  };
}
