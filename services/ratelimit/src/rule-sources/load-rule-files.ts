import { loadYaml } from '@tollgate/rules/load-yaml';
import type { RuleLoad } from '../ports/rule-source.ts';
import { type ReadRuleFilesOptions, readRuleFiles } from './read-rule-files.ts';

/** Where rule files are and how they are put together. */
export interface LoadRuleFilesOptions extends ReadRuleFilesOptions {
  readonly mergeDomains: boolean;
}

/** Reads and validates all rule files of a directory; every problem of every file is reported. */
export async function loadRuleFiles(options: LoadRuleFilesOptions): Promise<RuleLoad> {
  const { files, problems, warnings } = await readRuleFiles(options);
  const loaded = loadYaml(files, { mergeDomains: options.mergeDomains });
  if (!loaded.ok) {
    return { ok: false, problems: [...problems, ...loaded.problems] };
  }
  return problems.length === 0
    ? { ok: true, rules: loaded.rules, warnings: [...warnings, ...loaded.warnings] }
    : { ok: false, problems };
}
