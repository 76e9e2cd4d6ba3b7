import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** The RateLimitConfigs of the demo as they are written. */
export const manifestsFolder = resolve(import.meta.dirname, '../config/limits');

/** Reads the text of each manifest by its name. */
export async function readManifests(): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(manifestsFolder);
  const texts = names.map(
    async (name) => [name, await readFile(join(manifestsFolder, name), 'utf8')] as const,
  );
  return new Map(await Promise.all(texts));
}
