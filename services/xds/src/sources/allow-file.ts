import { statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { HeldObject, HoldStore, StoredHold } from '../catalog/source.ts';

/** Ignored by the source: names of manifests do not begin with a dot. */
const fileNames = { limits: '.allow-deletions', policies: '.allow-policy-deletions' };

const defaultPollMs = 1_000;

/**
 * Lets held deletions of a folder through when a file in it was written after they were held back.
 * Its writer may change the manifests, too. Nothing is stored: with XDS_DATA_FOLDER, the
 * last valid versions of the objects are, and a start compares the folder with them.
 */
export class AllowFile implements HoldStore {
  readonly #path: string;
  readonly #pollMs: number;
  #onChange: (stored: StoredHold) => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(folder: string, lets: keyof typeof fileNames, pollMs: number = defaultPollMs) {
    this.#path = join(folder, fileNames[lets]);
    this.#pollMs = pollMs;
  }

  get command(): string {
    return `touch ${this.#path}`;
  }

  async start(onChange: (stored: StoredHold) => void): Promise<void> {
    this.#onChange = onChange;
  }

  put(objects: readonly HeldObject[]): void {
    if (objects.length === 0) {
      this.#stop();
      this.#onChange({ isAllowed: false, objects: [] });
    } else if (this.#timer === undefined) {
      const before = this.#writtenMs();
      this.#timer = setInterval(() => void this.#check(before), this.#pollMs).unref();
    }
  }

  async close(): Promise<void> {
    this.#stop();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Undefined without a file. It is synchronous, since a file that is written once the hold is
   * logged counts as new. Times of files are compared with each other only: file systems have
   * clocks of their own.
   */
  #writtenMs(): number | undefined {
    try {
      return statSync(this.#path, { throwIfNoEntry: false })?.mtimeMs;
    } catch {
      return undefined;
    }
  }

  async #check(before: number | undefined): Promise<void> {
    const found = await stat(this.#path).catch(() => undefined);
    if (found !== undefined && found.mtimeMs !== before && this.#timer !== undefined)
      this.#onChange({ isAllowed: true, objects: [] });
  }
}
