import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A package.json, as far as images need it. */
export interface Manifest {
  readonly name?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  /** Platforms that it is for; all of them when missing. */
  readonly os?: readonly string[];
  readonly libc?: readonly string[];
  readonly cpu?: readonly string[];
  readonly [field: string]: unknown;
}

/** A lock file of npm: what is installed where; workspaces stand in it by their folders. */
export interface LockFile {
  readonly packages: Readonly<Record<string, Manifest>>;
  readonly [field: string]: unknown;
}

/** A folder of this repository that is a package of its own. */
export interface Workspace {
  /** Below the root of the repository. */
  readonly folder: string;
  readonly manifest: Manifest;
}

/**
 * The workspaces that a service is made of: itself, those it depends on, and so on; not what its tests alone use.
 *
 * @param root of the repository
 * @param folder of the service, below the root
 */
export async function workspacesOf(root: string, folder: string): Promise<readonly Workspace[]> {
  const folders = workspaceFolders(await readLockFile(root));
  const found = new Map<string, Workspace>();
  const visit = async (folder: string): Promise<void> => {
    if (found.has(folder)) return;
    const manifest = await readManifest(join(root, folder));
    found.set(folder, { folder, manifest });
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      const next = folders.get(name);
      if (next !== undefined) await visit(next);
    }
  };
  await visit(folder);
  return [...found.values()];
}

/** Reads the package.json of a folder. */
export async function readManifest(folder: string): Promise<Manifest> {
  // Our own file, in the form that npm wants.
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** Reads the package-lock.json of a folder. */
export async function readLockFile(folder: string): Promise<LockFile> {
  // npm's own file; its version 3 has `packages`.
  return JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as LockFile;
}

/** Names of all workspaces to their folders. */
function workspaceFolders({ packages }: LockFile): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(packages).flatMap(([folder, { name }]): [string, string][] =>
      name === undefined || folder === '' || folder.includes('node_modules/') ? [] : [[name, folder]],
    ),
  );
}
