import { relative } from 'node:path';
import { fingerprintFiles } from './file-fingerprint.ts';
import { type FindTextFilesOptions, findTextFiles } from './find-text-files.ts';
import { readTextFile } from './read-text-file.ts';

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
