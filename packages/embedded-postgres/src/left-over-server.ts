import { readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Time for a fast shutdown with a checkpoint. */
const stopTimeoutMs = 30_000;
const lookEveryMs = 50;

/**
 * Stops a PostgreSQL that a killed process left running on this cluster, and removes a stale lock
 * file. PostgreSQL refuses to start when the process id in a stale lock file belongs to another
 * program meanwhile.
 *
 * @throws Error when a server is left that does not stop.
 */
export async function clearLeftOverServer(cluster: string): Promise<void> {
  const lockFile = join(cluster, 'postmaster.pid');
  const lock = await readLock(lockFile);
  if (lock === undefined) return;
  if (await listens(lock.port)) {
    // A fast shutdown: clients are cut off, everything committed is on disk.
    sendSignal(lock.pid, 'SIGINT');
    const deadline = performance.now() + stopTimeoutMs;
    while ((await readLock(lockFile)) !== undefined) {
      if (performance.now() > deadline)
        throw new Error(
          `the PostgreSQL with process id ${lock.pid} left on ${cluster} does not stop: end it by hand`,
        );
      await delay(lookEveryMs);
    }
  }
  await rm(lockFile, { force: true });
}

/** The lock file has one value per line: process id, folder, start time, port. */
async function readLock(file: string): Promise<{ pid: number; port: number } | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]) };
}

/**
 * A postmaster listens from before recovery until its end; another program with its process id does
 * not.
 */
function listens(port: number): Promise<boolean> {
  if (!Number.isInteger(port) || port <= 0) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const answer = (value: boolean): void => {
      socket.destroy();
      resolve(value);
    };
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
    socket.setTimeout(1000, () => answer(false));
  });
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
