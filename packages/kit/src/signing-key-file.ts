import { randomUUID } from 'node:crypto';
import { chmod, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { getErrorMessage } from './errors.ts';
import { maxKeyFileBytes } from './signing-keys.ts';
import { readTextFile } from './text-files.ts';

/** The text of a file of keys. A file that does not exist is empty. */
export function readKeyFile(path: string): Promise<string> {
  return readTextFile(path, maxKeyFileBytes).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  });
}

/**
 * Replaces a file of keys at once, readable by its owner only: a server that watches it never reads
 * half of it. If that fails, no copy of the keys is left.
 */
export async function replaceKeyFile(path: string, content: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const unfinished = `${target}.${randomUUID()}`;
  try {
    await writeFile(unfinished, content, { mode: 0o600, flag: 'wx' });
    await chmod(unfinished, 0o600);
    await rename(unfinished, target);
  } catch (cause) {
    await rm(unfinished, { force: true });
    throw new Error(
      `${getErrorMessage(cause)}. The keys are unchanged. The folder must be writable, and mounted as a whole: a file that is mounted alone cannot be replaced`,
      { cause },
    );
  }
}
