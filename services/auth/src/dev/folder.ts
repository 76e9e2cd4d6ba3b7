import { access, constants, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { settingsSpec } from '../config/settings.ts';

/**
 * Creates the data folder of development mode, if it does not exist.
 *
 * @throws Error of one line with the folder, the reason and the setting.
 */
export async function createDevelopmentFolder(folder: string): Promise<void> {
  try {
    await createFolder(folder);
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { env } = settingsSpec.developmentFolder;
    throw new Error(
      `cannot use the development folder ${folder}: ${getReason(error)}. Set ${env} to a writable folder`,
      { cause: error },
    );
  }
}

/** mkdir with `recursive` never returns below /proc, where creating a folder fails with ENOENT. */
async function createFolder(folder: string): Promise<void> {
  const existing = await stat(folder).catch(() => undefined);
  if (existing?.isDirectory()) return;
  if (existing !== undefined) throw new NotAFolder(folder);
  const parent = dirname(folder);
  if (parent !== folder) await createFolder(parent);
  await mkdir(folder).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    // Created by another process, unless it is a broken symbolic link.
    if (!(await stat(folder).catch(() => undefined))?.isDirectory()) throw new NotAFolder(folder);
  });
}

class NotAFolder extends Error {}

function getReason(error: unknown): string {
  if (error instanceof NotAFolder) return `${error.message} is not a folder`;
  const { code = '', path = '', message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `no permission to write ${path}`;
    case 'EROFS':
      return `${path} is on a read-only file system`;
    case 'ENOENT':
      return `no folders can be created in ${dirname(path)}`;
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return message;
  }
}

/** Has the process id of the server that uses the folder. */
const fileName = 'server.pid';

/** The parts of `process` that a lock needs. */
export type LockingProcess = Pick<NodeJS.Process, 'pid' | 'kill'>;

/**
 * Locks the development folder for a process, and returns a function that releases it. The lock of
 * a killed server is ignored.
 *
 * @throws Error that names the process which has the lock.
 */
export async function lockFolder(folder: string, self: LockingProcess): Promise<() => Promise<void>> {
  const file = join(folder, fileName);
  const owner = await readOwner(file);
  // The same id is that of a predecessor: in containers every server is process 1.
  if (owner !== undefined && owner !== self.pid && isAlive(owner, self)) throw inUse(folder, owner, file);
  await rm(file, { force: true });
  try {
    // Of two concurrent starts, one creates the file.
    await writeFile(file, `${self.pid}\n`, { flag: 'wx' });
  } catch (error) {
    const winner = await readOwner(file);
    throw winner === undefined ? error : inUse(folder, winner, file);
  }
  return () => rm(file, { force: true });
}

function inUse(folder: string, owner: number, file: string): Error {
  return new Error(
    `${folder} is in use by the server with process id ${owner}: stop it, or set SVC_DEVELOPMENT_FOLDER to another folder. If that process is not a server, remove ${file}.`,
  );
}

async function readOwner(file: string): Promise<number | undefined> {
  const owner = Number(await readFile(file, 'utf8').catch(() => ''));
  return Number.isInteger(owner) && owner > 0 ? owner : undefined;
}

function isAlive(pid: number, self: LockingProcess): boolean {
  try {
    // Signal 0 only checks that the process exists.
    self.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
