import { loadYamlSteps } from '@tollgate/rules/load-yaml';
import type { RuleLoad } from '../ports/rule-source.ts';
import { type ReadRuleFilesOptions, readRuleFiles } from './read-rule-files.ts';
import { runInSlices } from './run-in-slices.ts';

/** Where rule files are and how they are put together. */
export interface LoadRuleFilesOptions extends ReadRuleFilesOptions {
  readonly mergeDomains: boolean;
}

/** 100,000 rules take most of a second, and Envoy gives up on an answer after 20 ms unless told otherwise. */
const sliceMs = 5;

/**
 * Reads and validates all rule files of a directory; every problem of every file is reported. Requests are answered
 * meanwhile.
 */
export async function loadRuleFiles(options: LoadRuleFilesOptions): Promise<RuleLoad> {
  const { files, problems, warnings } = await readRuleFiles(options);
  const loaded = await runInSlices(loadYamlSteps(files, { mergeDomains: options.mergeDomains }), { sliceMs });
  if (!loaded.ok) {
    return { ok: false, problems: [...problems, ...loaded.problems] };
  }
  return problems.length === 0
    ? { ok: true, rules: loaded.rules, warnings: [...warnings, ...loaded.warnings] }
    : { ok: false, problems };
}
