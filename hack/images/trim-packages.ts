import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Types, sources in TypeScript (which Node does not run in packages) and source maps. */
const forCompilers = /\.(?:[cm]?ts|tsx|flow|map)$/;

/** Pages for people; a licence stays. */
const forPeople = /\.(?:md|markdown)$/i;
const licence = /^(?:licen[cs]e|notice|copying)/i;

/** Folders right below that of a package which have no part in it. `.bin` has links to command lines. */
const forDevelopers = new Set([
  ...['test', 'tests', '__tests__', 'bench', 'benchmark', 'benchmarks', 'coverage'],
  ...['docs', 'example', 'examples', '.github', '.vscode'],
]);

/**
 * Removes what no running service reads from every node_modules in a folder of manifests: npm makes one in a workspace, too, when
 * that needs another version than the rest. Links to workspaces stay, and are not followed.
 */
export async function trimPackages(folder: string): Promise<void> {
  await trimFolder(folder);
}

async function trimNodeModules(nodeModules: string): Promise<void> {
  await rm(join(nodeModules, '.bin'), { recursive: true, force: true });
  for (const entry of await readdir(nodeModules, { withFileTypes: true })) {
    const path = join(nodeModules, entry.name);
    if (!entry.isDirectory()) continue;
    // A scope is a folder of packages as node_modules is.
    await (entry.name.startsWith('@') ? trimNodeModules(path) : trimPackage(path));
  }
  await removeIfEmpty(nodeModules);
}

async function trimPackage(folder: string): Promise<void> {
  for (const name of forDevelopers) await rm(join(folder, name), { recursive: true, force: true });
  await trimFolder(folder);
}

async function trimFolder(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await (entry.name === 'node_modules' ? trimNodeModules(path) : trimFolder(path));
    else if (entry.isFile() && isNeedless(entry.name)) await rm(path);
  }
  await removeIfEmpty(folder);
}

function isNeedless(name: string): boolean {
  return forCompilers.test(name) || (forPeople.test(name) && !licence.test(name));
}

async function removeIfEmpty(folder: string): Promise<void> {
  const entries = await readdir(folder);
  if (entries.length === 0) await rmdir(folder);
}
