import { access, constants, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { settingsSpec } from '../settings/settings.ts';

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
