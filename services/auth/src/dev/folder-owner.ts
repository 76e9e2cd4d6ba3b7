import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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
