import { isUtf8 } from 'node:buffer';
import { constants, open } from 'node:fs/promises';

/**
 * Reads a file of at most `maxBytes` as UTF-8; `boundedBy` says in the message what these bytes are of.
 *
 * @throws Error that says why it cannot be read, or is nothing to read.
 */
export async function readTextFile(
  path: string,
  maxBytes: number,
  boundedBy = 'that a file may have',
): Promise<string> {
  // Non-blocking: what became a pipe since it was listed would wait for a writer for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) {
      throw new Error('not a regular file');
    }
    if (stats.size > maxBytes) {
      throw new Error(`the file has ${stats.size} bytes, more than the ${maxBytes} ${boundedBy}`);
    }
    const bytes = await file.readFile();
    if (!isUtf8(bytes)) {
      throw new Error('the file is not UTF-8');
    }
    return bytes.toString('utf8');
  } finally {
    await file.close();
  }
}
