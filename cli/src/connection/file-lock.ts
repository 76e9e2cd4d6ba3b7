import { rm, stat, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailure } from '../failure.ts';

/** A holder reads and writes one small file. */
const staleMs = 10_000;
const timeoutMs = 15_000;
const retryMs = 20;

/**
 * Runs `work` while no other process does for the same path. The lock is a file beside it, and that
 * of a killed process is ignored after ten seconds.
 *
 * @throws CommandFailure if the lock is not released in time
 */
export async function withFileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  const deadline = performance.now() + timeoutMs;
  while (!(await create(lock))) {
    if (await isStale(lock)) await rm(lock, { force: true });
    else if (performance.now() > deadline)
      throw new CommandFailure(`${lock} is held by another command: remove it if none is running`);
    else await delay(retryMs);
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

async function create(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, `${process.pid}\n`, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    // Parsed boundary: the file system throws nothing else.
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new CommandFailure(`${lock} cannot be written: ${message}`);
  }
}

async function isStale(lock: string): Promise<boolean> {
  const found = await stat(lock).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > staleMs;
}
