import { realpath } from 'node:fs/promises';
import { getErrorMessage, isMissingFile } from './errors.ts';
import { maxKeyFileBytes } from './signing-keys.ts';
import { readTextFile, replaceTextFile } from './text-files.ts';

/** The text of a file of keys. A file that does not exist is empty. */
export function readKeyFile(path: string): Promise<string> {
  return readTextFile(path, maxKeyFileBytes).catch((error: unknown) => {
    if (isMissingFile(error)) return '';
    throw error;
  });
}

/** Replaces a file of keys at once. A link stays, and what it leads to is replaced. */
export async function replaceKeyFile(path: string, content: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  try {
    await replaceTextFile(target, content);
  } catch (cause) {
    throw new Error(
      `${getErrorMessage(cause)}. The keys are unchanged. The folder must be writable, and mounted as a whole: a file that is mounted alone cannot be replaced`,
      { cause },
    );
  }
}
