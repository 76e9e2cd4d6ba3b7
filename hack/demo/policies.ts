import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** A change to a manifest while everything runs. */
export interface PolicyEdit {
  /** Name inside hack/demo/config/policies. */
  readonly file: string;
  /** The end of exactly one line of the file. */
  readonly from: string;
  readonly to: string;
}

/**
 * Makes an edit in the text of a manifest.
 *
 * @throws Error when the text to replace is not there exactly once.
 */
export function editText(text: string, { file, from, to }: PolicyEdit): string {
  const [before, after, ...more] = text.split(`${from}\n`);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${file} is to have exactly one line that ends in "${from}"`);
  return `${before}${to}\n${after}`;
}

/** The access policies of the demo as they are written. */
const manifestsFolder = resolve(import.meta.dirname, 'config/policies');

export async function readManifests(): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(manifestsFolder);
  const texts = names.map(
    async (name) => [name, await readFile(join(manifestsFolder, name), 'utf8')] as const,
  );
  return new Map(await Promise.all(texts));
}

/** The access policies of the demo while it runs: a copy in a folder, which the caller removes. */
export class PolicyFolder {
  /** Where to edit the manifests. */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Writes all manifests of hack/demo/config/policies, and overwrites edits. */
  async write(): Promise<void> {
    await cp(manifestsFolder, this.path, { recursive: true });
  }

  /**
   * Makes an edit.
   *
   * @throws Error when the text to replace is not there exactly once.
   */
  async edit(edit: PolicyEdit): Promise<void> {
    const path = join(this.path, edit.file);
    // In place, as an editor does.
    await writeFile(path, editText(await readFile(path, 'utf8'), edit));
  }
}
