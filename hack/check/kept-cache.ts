import { cp, mkdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

export interface CacheFolders {
  /** Where a tool has its cache. */
  readonly used: string;
  /** Where the next clone on this machine finds it. */
  readonly kept: string;
}

/** The cache of a tool in this clone, and its copy beside the programs of hack/setup.sh. */
export function cacheFolders(tool: string): CacheFolders {
  const { XDG_CACHE_HOME } = process.env;
  const root = XDG_CACHE_HOME || join(homedir(), '.cache');
  return { used: join('node_modules/.cache', tool), kept: join(root, 'tollgate/checks', tool) };
}

/**
 * Runs a tool that checks only what differs from its cache by content: a new clone begins with the
 * cache of the last one. Without a place for it, the tool checks everything.
 */
export async function withKeptCache<Result>(
  { used, kept }: CacheFolders,
  run: () => Promise<Result>,
): Promise<Result> {
  for (const folder of [used, kept]) await deleteFile(folder);
  await mkdir(dirname(used), { recursive: true });
  await cp(kept, used, { recursive: true, force: false }).catch(() => undefined);
  const result = await run();
  const next = `${kept}-${process.pid}`;
  try {
    await cp(used, next, { recursive: true });
    await rm(kept, { recursive: true, force: true });
    await rename(next, kept);
  } catch {
    // Another clone was faster, or the folder is read-only: the next run checks more.
    await rm(next, { recursive: true, force: true }).catch(() => undefined);
  }
  return result;
}

/** Caches were files before they were folders. */
async function deleteFile(path: string): Promise<void> {
  try {
    if ((await stat(path)).isFile()) await rm(path);
  } catch {
    // There is none, or the folder is read-only.
  }
}
