import { runInSlices } from '@tollgate/kit/steps';
import { type ReadTextFilesOptions, readTextFiles, type TextFileNotice } from '@tollgate/kit/text-files';
import { loadYamlSteps } from '@tollgate/rules/load-yaml';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { RuleLoad } from '../ports/rule-source.ts';

/** Where rule files are and how they are put together. */
export interface LoadRuleFilesOptions extends ReadTextFilesOptions {
  readonly mergeDomains: boolean;
}

/** 100,000 rules take most of a second, and Envoy gives up on an answer after 20 ms unless told otherwise. */
const sliceMs = 5;

/**
 * Reads and validates all rule files of a directory; every problem of every file is reported. Requests are answered
 * meanwhile.
 */
export async function loadRuleFiles(options: LoadRuleFilesOptions): Promise<RuleLoad> {
  const { files, ...notices } = await readTextFiles(options);
  const problems = notices.problems.map(({ source, message }) =>
    asProblem({ source, message: `error loading config file: ${message}` }),
  );
  const warnings = notices.warnings.map(asProblem);
  const loaded = await runInSlices(loadYamlSteps(files, { mergeDomains: options.mergeDomains }), { sliceMs });
  if (!loaded.ok) {
    return { ok: false, problems: [...problems, ...loaded.problems] };
  }
  return problems.length === 0
    ? { ok: true, rules: loaded.rules, warnings: [...warnings, ...loaded.warnings] }
    : { ok: false, problems };
}

const asProblem = ({ source, message }: TextFileNotice): RuleProblem => ({ source, path: '', message });
