import { chmod, cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Workspace } from './workspaces.ts';

/** Where workspaces keep what runs. */
const codeFolders = ['src', 'generated'];

/** Declarations are for compilers; Node strips types and looks at none. */
const notNeeded = /\.d\.ts$/;

/** Copies the code of workspaces, as it is: Node runs TypeScript. */
export async function copyCode(
  root: string,
  workspaces: readonly Workspace[],
  target: string,
): Promise<void> {
  for (const { folder } of workspaces) {
    for (const code of codeFolders) {
      await cp(join(root, folder, code), join(target, folder, code), {
        recursive: true,
        filter: (path) => !notNeeded.test(path),
      }).catch(unlessMissing);
    }
  }
  await makeReadable(target);
}

/** A checkout may be for the eyes of one user only; in the image the service is another one. */
async function makeReadable(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  }
}

/** No workspace has every folder. */
function unlessMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
