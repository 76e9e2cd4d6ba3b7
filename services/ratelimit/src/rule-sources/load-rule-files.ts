import { readFile, stat } from 'node:fs/promises';
import { relative } from 'node:path';
import { loadYaml, type RuleFile } from '@tollgate/rules/load-yaml';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { RuleLoad } from '../ports/rule-source.ts';
import { type FindRuleFilesOptions, findRuleFiles } from './find-rule-files.ts';

/** Where rule files are and how they are read. */
export interface LoadRuleFilesOptions extends FindRuleFilesOptions {
  /** Directory with the files. */
  readonly directory: string;
  /** Directory that file names in messages are relative to. */
  readonly labelRoot: string;
  readonly mergeDomains: boolean;
}

/** Largest rule file read. 100,000 rules take 10 MB; what is this large is a mistake, not a configuration. */
const maxFileBytes = 256 * 1024 * 1024;

/** Reads and validates all rule files of a directory; every problem of every file is reported. */
export async function loadRuleFiles(options: LoadRuleFilesOptions): Promise<RuleLoad> {
  const label = (path: string): string => relative(options.labelRoot, path) || path;
  const files: RuleFile[] = [];
  const problems: RuleProblem[] = [];

  async function attempt(path: string, read: () => Promise<unknown>): Promise<void> {
    try {
      await read();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      problems.push({ source: label(path), path: '', message: `error loading config file: ${reason}` });
    }
  }

  await attempt(options.directory, async () => {
    for (const path of await findRuleFiles(options.directory, options)) {
      await attempt(path, async () => files.push({ source: label(path), text: await readRuleFile(path) }));
    }
  });
  const loaded = loadYaml(files, { mergeDomains: options.mergeDomains });
  if (loaded.ok && problems.length === 0) {
    return loaded;
  }
  return { ok: false, problems: loaded.ok ? problems : [...problems, ...loaded.problems] };
}

async function readRuleFile(path: string): Promise<string> {
  const { size } = await stat(path);
  if (size > maxFileBytes) {
    throw new Error(`the file has ${size} bytes, more than ${maxFileBytes}`);
  }
  return readFile(path, 'utf8');
}
