import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { chmod, constants, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { getErrorMessage } from './errors.ts';
import { fingerprintFiles } from './file-watch.ts';
import { compareText } from './text.ts';

/** Which files of a directory to read. */
interface FindTextFilesOptions {
  /**
   * Ignore names that begin with a dot. Those with two (internal to a Kubernetes volume) are always
   * ignored.
   */
  readonly ignoreDotFiles: boolean;
  /** Only names that end in one of these, such as `.yaml`; all when absent. */
  readonly extensions?: readonly string[];
}

/** Files below a directory. */
interface FoundTextFiles {
  /** Paths of the files to read, sorted. Includes broken links: reading one reports the error. */
  readonly files: readonly string[];
  /** Links to directories, which are not followed. */
  readonly directoryLinks: readonly string[];
}

/** Deeper folders are a cycle of mounts or a mistake. */
const maxDepth = 32;

/**
 * Finds the regular files below a directory, and links to files. Links to directories are not
 * followed: in a Kubernetes volume they contain the same files again.
 */
async function findTextFiles(directory: string, options: FindTextFilesOptions): Promise<FoundTextFiles> {
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
    throw new Error(`${directory} is more than ${maxDepth} folders deep`);
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

/**
 * Reads a file of at most `maxBytes` as UTF-8; `boundedBy` describes the limit in the message.
 *
 * @throws Error with the reason why it cannot be read.
 */
export async function readTextFile(path: string, maxBytes: number, boundedBy = 'allowed'): Promise<string> {
  // Non-blocking: a file replaced by a pipe since it was listed would wait for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) {
      throw new Error('not a regular file');
    }
    if (stats.size > maxBytes) {
      throw new Error(`the file has ${stats.size} bytes, more than the ${maxBytes} ${boundedBy}`);
    }
    const bytes = await file.readFile();
    if (!isUtf8(bytes)) {
      throw new Error('the file is not UTF-8');
    }
    return bytes.toString('utf8');
  } finally {
    await file.close();
  }
}

/**
 * Replaces a file at once, readable by its owner only: a program that watches it never reads half
 * of it. If that fails, the file is unchanged, and no copy of the text is left.
 */
export async function replaceTextFile(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}`;
  try {
    await writeFile(unfinished, text, { mode: 0o600, flag: 'wx' });
    await chmod(unfinished, 0o600);
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/** Options of reading a directory. */
export interface ReadTextFilesOptions extends FindTextFilesOptions {
  /** Directory with the files. */
  readonly directory: string;
  /** Directory that file names in messages are relative to. */
  readonly labelRoot: string;
}

/** A file with its text. */
export interface TextFile {
  /** Its path, as shown in messages. */
  readonly source: string;
  readonly text: string;
}

/** A problem or a warning about one file. */
export interface TextFileNotice {
  readonly source: string;
  readonly message: string;
}

/** The texts of a directory at one moment. */
export interface FolderTexts {
  /** Files in the order of their paths. */
  readonly files: readonly TextFile[];
  /** Files that could not be read. */
  readonly problems: readonly TextFileNotice[];
  /** Entries that were skipped. */
  readonly warnings: readonly TextFileNotice[];
}

/** Maximum size of all files together. 100,000 rules take 10 MB. */
const maxBytes = 256 * 1024 * 1024;

const boundedBy = `left of the ${maxBytes} allowed for all files of the folder together`;

/** Maximum number of attempts to read files that change meanwhile. */
const maxRounds = 5;

/**
 * Reads a consistent state of all files below a directory: when one changes meanwhile, all are read
 * again.
 */
export async function readTextFiles(options: ReadTextFilesOptions): Promise<FolderTexts> {
  let before = await fingerprintFiles([options.directory], false);
  for (let round = 1; ; round += 1) {
    const texts = await readOnce(options);
    const after = await fingerprintFiles([options.directory], false);
    if (after.digest === before.digest || round === maxRounds) {
      return texts;
    }
    before = after;
  }
}

async function readOnce(options: ReadTextFilesOptions): Promise<FolderTexts> {
  const files: TextFile[] = [];
  const problems: TextFileNotice[] = [];
  const warnings: TextFileNotice[] = [];
  const label = (path: string): string => relative(options.labelRoot, path) || path;
  let bytesLeft = maxBytes;

  async function attempt(path: string, read: () => Promise<void>): Promise<void> {
    try {
      await read();
    } catch (error) {
      problems.push({ source: label(path), message: getErrorMessage(error) });
    }
  }

  async function readOne(path: string): Promise<void> {
    const text = await readTextFile(path, bytesLeft, boundedBy);
    bytesLeft -= Buffer.byteLength(text);
    files.push({ source: label(path), text });
  }

  await attempt(options.directory, async () => {
    const found = await findTextFiles(options.directory, options);
    for (const path of found.directoryLinks) {
      warnings.push({ source: label(path), message: 'a link to a directory is not followed' });
    }
    for (const path of found.files) {
      await attempt(path, () => readOne(path));
    }
  });
  return { files, problems, warnings };
}
