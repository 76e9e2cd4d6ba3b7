import { cp } from 'node:fs/promises';
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
}

/** No workspace has every folder. */
function unlessMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
