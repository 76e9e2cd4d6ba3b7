import { access, constants, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { settingsSpec } from '../config/settings.ts';

/**
 * Makes the folder that development mode keeps its data in, unless it is there.
 *
 * @throws Error of one line that names the folder, what is wrong with it, and the setting.
 */
export async function makeDevelopmentFolder(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { env } = settingsSpec.developmentFolder;
    throw new Error(
      `the development folder ${folder} cannot be used: ${reasonOf(error)}. Set ${env} to a folder that this user may write to`,
      { cause: error },
    );
  }
}

/** mkdir with `recursive` never returns below /proc, where creating a folder fails with ENOENT. */
async function makeFolder(folder: string): Promise<void> {
  const existing = await stat(folder).catch(() => undefined);
  if (existing?.isDirectory()) return;
  if (existing !== undefined) throw new NotAFolder(folder);
  const parent = dirname(folder);
  if (parent !== folder) await makeFolder(parent);
  await mkdir(folder).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    // Another process has made it in the meantime, unless it is a link to nothing.
    if (!(await stat(folder).catch(() => undefined))?.isDirectory()) throw new NotAFolder(folder);
  });
}

class NotAFolder extends Error {}

function reasonOf(error: unknown): string {
  if (error instanceof NotAFolder) return `${error.message} is not a folder`;
  const { code = '', path = '', message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `no permission to write ${path}`;
    case 'EROFS':
      return `${path} is on a read-only file system`;
    case 'ENOENT':
      return `${dirname(path)} takes no folders`;
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return message;
  }
}

/** Holds the process id of the server that uses the folder. */
const fileName = 'server.pid';

/** `process`: who takes the folder, and a way to ask for others. */
export type FolderTaker = Pick<NodeJS.Process, 'pid' | 'kill'>;

/**
 * Takes the development folder for a process; a server that was killed no longer has it. Answers how to give it back.
 *
 * @throws Error that names the process that has it.
 */
export async function takeFolder(folder: string, taker: FolderTaker): Promise<() => Promise<void>> {
  const file = join(folder, fileName);
  const owner = await readOwner(file);
  // Its own id is that of a predecessor: in containers every server is process 1.
  if (owner !== undefined && owner !== taker.pid && isAlive(owner, taker)) throw inUse(folder, owner, file);
  await rm(file, { force: true });
  try {
    // Of two servers that start at once one makes the file.
    await writeFile(file, `${taker.pid}\n`, { flag: 'wx' });
  } catch (error) {
    const faster = await readOwner(file);
    throw faster === undefined ? error : inUse(folder, faster, file);
  }
  return () => rm(file, { force: true });
}

function inUse(folder: string, owner: number, file: string): Error {
  return new Error(
    `the server with process id ${owner} uses ${folder}: stop it, or set SVC_DEVELOPMENT_FOLDER to another folder. If that process is no server, remove ${file}.`,
  );
}

async function readOwner(file: string): Promise<number | undefined> {
  const owner = Number(await readFile(file, 'utf8').catch(() => ''));
  return Number.isInteger(owner) && owner > 0 ? owner : undefined;
}

function isAlive(pid: number, taker: FolderTaker): boolean {
  try {
    // Sends nothing, and fails when there is no such process.
    taker.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
