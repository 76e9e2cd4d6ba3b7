import { lstat, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';

/**
 * Makes room for a unix socket: removes one that a killed process left behind, which would make every later start fail.
 * Rejects when the path is in use or is no socket, and when its folder does not exist. Two processes that start at the same
 * instant on one path may still both find it free.
 *
 * @param setting What gave the path: messages begin with it.
 */
export async function removeStaleSocket(path: string, setting: string): Promise<void> {
  const found = await lstat(path).catch(unlessMissing);
  if (found === undefined) {
    if ((await lstat(dirname(path)).catch(unlessMissing)) === undefined) {
      throw new Error(`${setting}: the folder of ${path} does not exist`);
    }
    return;
  }
  // Connecting to a plain file is refused too, and that file may be dear to somebody.
  if (!found.isSocket()) throw new Error(`${setting}: ${path} exists and is not a socket`);
  const refusal = await tryToConnect(path);
  if (refusal === undefined) throw new Error(`${setting}: another process listens on ${path}`);
  // Only this says that nobody listens; a full backlog (EAGAIN) or missing rights (EACCES) do not.
  if (refusal.code === 'ECONNREFUSED') await rm(path, { force: true });
  else if (refusal.code !== 'ENOENT') throw new Error(`${setting}: ${path} is in use`, { cause: refusal });
}

function tryToConnect(path: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('error', resolve);
    socket.once('connect', () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
