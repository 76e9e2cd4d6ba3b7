import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Which files of a directory count. */
export interface FindRuleFilesOptions {
  /** Leave out names that begin with a dot. Those that begin with two (a Kubernetes volume's own) always are. */
  readonly ignoreDotFiles: boolean;
}

/** Deeper folders than this are a link to oneself or a mistake. */
const maxDepth = 32;

/**
 * Lists the regular files below a directory, sorted by path. Links to files count, links to directories are not
 * followed: in a Kubernetes volume they hold the same files again.
 */
export async function findRuleFiles(
  directory: string,
  options: FindRuleFilesOptions,
): Promise<readonly string[]> {
  const found: string[] = [];
  await walk(directory, options, found, 0);
  return found.sort((a, b) => (a < b ? -1 : 1));
}

async function walk(
  directory: string,
  options: FindRuleFilesOptions,
  found: string[],
  depth: number,
): Promise<void> {
  if (depth > maxDepth) {
    throw new Error(`${directory} lies more than ${maxDepth} folders deep`);
  }
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (entry.name.startsWith('..') || (options.ignoreDotFiles && entry.name.startsWith('.'))) {
      continue;
    }
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      await walk(path, options, found, depth + 1);
    } else if (entry.isFile() || (entry.isSymbolicLink() && (await stat(path)).isFile())) {
      found.push(path);
    }
  }
}
