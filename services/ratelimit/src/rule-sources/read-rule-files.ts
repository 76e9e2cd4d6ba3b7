import { relative } from 'node:path';
import { fingerprintFiles } from '@tollgate/kit/file-fingerprint';
import type { RuleFile } from '@tollgate/rules/load-yaml';
import type { RuleProblem } from '@tollgate/rules/problem';
import { type FindRuleFilesOptions, findRuleFiles } from './find-rule-files.ts';
import { readRuleFile } from './read-rule-file.ts';

/** Where rule files are. */
export interface ReadRuleFilesOptions extends FindRuleFilesOptions {
  /** Directory with the files. */
  readonly directory: string;
  /** Directory that file names in messages are relative to. */
  readonly labelRoot: string;
}

/** The texts of a directory at one moment. */
export interface RuleTexts {
  readonly files: readonly RuleFile[];
  /** What could not be read. */
  readonly problems: readonly RuleProblem[];
  /** What was passed over. */
  readonly warnings: readonly RuleProblem[];
}

/** Most bytes of all files together. 100,000 rules take 10 MB; what is this large is a mistake, not a configuration. */
const maxBytes = 256 * 1024 * 1024;

/** Times that files which change under the reader are read again; then they are taken as they are. */
const maxRounds = 5;

/** Reads all rule files as they stood together: when one changes meanwhile, all are read again. */
export async function readRuleFiles(options: ReadRuleFilesOptions): Promise<RuleTexts> {
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

async function readOnce(options: ReadRuleFilesOptions): Promise<RuleTexts> {
  const files: RuleFile[] = [];
  const problems: RuleProblem[] = [];
  const warnings: RuleProblem[] = [];
  const label = (path: string): string => relative(options.labelRoot, path) || path;
  let bytesLeft = maxBytes;

  async function attempt(path: string, read: () => Promise<void>): Promise<void> {
    try {
      await read();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      problems.push({ source: label(path), path: '', message: `error loading config file: ${reason}` });
    }
  }

  async function readOne(path: string): Promise<void> {
    const text = await readRuleFile(path, bytesLeft);
    bytesLeft -= Buffer.byteLength(text);
    files.push({ source: label(path), text });
  }

  await attempt(options.directory, async () => {
    const found = await findRuleFiles(options.directory, options);
    for (const path of found.directoryLinks) {
      warnings.push({ source: label(path), path: '', message: 'a link to a directory is not followed' });
    }
    for (const path of found.files) {
      await attempt(path, () => readOne(path));
    }
  });
  return { files, problems, warnings };
}
