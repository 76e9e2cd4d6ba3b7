import { isUtf8 } from 'node:buffer';
import { constants, open, readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fingerprintFiles } from './file-fingerprint.ts';
import { compareText } from './text.ts';

/** Which files of a directory count. */
interface FindTextFilesOptions {
  /** Leave out names that begin with a dot. Those that begin with two (a Kubernetes volume's own) always are. */
  readonly ignoreDotFiles: boolean;
  /** Only names that end in one of these, such as `.yaml`; all when absent. */
  readonly extensions?: readonly string[];
}

/** What is below a directory. */
interface FoundTextFiles {
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

/**
 * Reads a file of at most `maxBytes` as UTF-8; `boundedBy` says in the message what these bytes are of.
 *
 * @throws Error that says why it cannot be read, or is nothing to read.
 */
export async function readTextFile(
  path: string,
  maxBytes: number,
  boundedBy = 'that a file may have',
): Promise<string> {
  // Non-blocking: what became a pipe since it was listed would wait for a writer for ever.
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

/** Which files to read. */
export interface ReadTextFilesOptions extends FindTextFilesOptions {
  /** Directory with the files. */
  readonly directory: string;
  /** Directory that file names in messages are relative to. */
  readonly labelRoot: string;
}

/** One file. */
export interface TextFile {
  /** Its path as messages show it. */
  readonly source: string;
  readonly text: string;
}

/** What is to be said of one file. */
export interface TextFileNotice {
  readonly source: string;
  readonly message: string;
}

/** The texts of a directory at one moment. */
export interface FolderTexts {
  /** In the order of their paths. */
  readonly files: readonly TextFile[];
  /** What could not be read. */
  readonly problems: readonly TextFileNotice[];
  /** What was passed over. */
  readonly warnings: readonly TextFileNotice[];
}

/** Most bytes of all files together. 100,000 rules take 10 MB; what is this large is a mistake, not a configuration. */
const maxBytes = 256 * 1024 * 1024;

const boundedBy = `left of the ${maxBytes} that all files of the folder may have together`;

/** Times that files which change under the reader are read again; then they are taken as they are. */
const maxRounds = 5;

/** Reads all files below a directory as they stood together: when one changes meanwhile, all are read again. */
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
      problems.push({ source: label(path), message: error instanceof Error ? error.message : String(error) });
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
