import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { compareText } from './compare-text.ts';

/** Which files of a directory count. */
export interface FindTextFilesOptions {
  /** Leave out names that begin with a dot. Those that begin with two (a Kubernetes volume's own) always are. */
  readonly ignoreDotFiles: boolean;
  /** Only names that end in one of these, such as `.yaml`; all when absent. */
  readonly extensions?: readonly string[];
}

/** What is below a directory. */
export interface FoundTextFiles {
  /** Paths of the files to read, sorted. Broken links are among them: reading tells what is wrong. */
  readonly files: readonly string[];
  /** Links to directories, which are not followed. */
  readonly directoryLinks: readonly string[];
}

/** Deeper folders than this are a link to oneself or a mistake. */
const maxDepth = 32;

/**
 * Finds the regular files below a directory. Links to files count, links to directories are not followed: in a
 * Kubernetes volume they hold the same files again. Sockets, pipes and devices are no text.
 */
export async function findTextFiles(
  directory: string,
  options: FindTextFilesOptions,
): Promise<FoundTextFiles> {
  const walk: Walk = { options, files: [], directoryLinks: [] };
  await addDirectory(walk, directory, 0);
  return { files: walk.files.sort(compareText), directoryLinks: walk.directoryLinks.sort(compareText) };
}

interface Walk {
  readonly options: FindTextFilesOptions;
  readonly files: string[];
  readonly directoryLinks: string[];
}

async function addDirectory(walk: Walk, directory: string, depth: number): Promise<void> {
  if (depth > maxDepth) {
    throw new Error(`${directory} lies more than ${maxDepth} folders deep`);
  }
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (entry.name.startsWith('..') || (walk.options.ignoreDotFiles && entry.name.startsWith('.'))) {
      continue;
    }
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      await addDirectory(walk, path, depth + 1);
    } else if (entry.isFile()) {
      addFile(walk, path);
    } else if (entry.isSymbolicLink()) {
      await addLink(walk, path);
    }
  }
}

async function addLink(walk: Walk, path: string): Promise<void> {
  const target = await stat(path).catch(() => undefined);
  if (target === undefined || target.isFile()) {
    addFile(walk, path);
  } else if (target.isDirectory()) {
    walk.directoryLinks.push(path);
  }
}

function addFile({ options: { extensions }, files }: Walk, path: string): void {
  if (extensions === undefined || extensions.some((extension) => path.endsWith(extension))) files.push(path);
}
