import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describeFlags, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { isMissingFile } from '@tollgate/kit/errors';
import { maxProblems } from '@tollgate/rules/compile';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import { loadRuleFiles } from '../rules/file-source.ts';
import type { RuleLoad } from '../rules/rule-store.ts';

const command = 'tollgate-ratelimit-check';
const failedExitCode = 1;

/** How commands read rule files. */
export const ruleFileFlags = {
  merge_domain_configs: {
    kind: 'switch',
    doc: 'Allow several files to define the same domain, as the service does with MERGE_DOMAIN_CONFIG=true.',
  },
  ignore_dot_files: {
    kind: 'switch',
    doc: 'Ignore files whose names begin with a dot, as the service does with RUNTIME_IGNOREDOTFILES=true.',
  },
} as const;

const flags = {
  config_dir: { kind: 'text', value: 'folder', doc: 'The folder with the rule files.' },
  ...ruleFileFlags,
  json: { kind: 'switch', doc: 'Print the findings as JSON.' },
} as const;

const help = `${command} -config_dir <folder> [flags]

Validates all rule files of a folder as the rate limit service does, and prints one problem or warning per line:
file:line:column: message.

${describeFlags(flags)}
Flags are written with one dash or two. Exits with 0 when the service would load the files, 1 when it would not, 2 when
the flags are invalid.
`;

/** Runs tollgate-ratelimit-check with its arguments. */
export async function checkRules(args: readonly string[]): Promise<Outcome> {
  const parsed = parseFlags(flags, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'wrong') return wrongUsage(command, parsed.problems);
  const { config_dir: directory, merge_domain_configs, ignore_dot_files, json } = parsed.values;
  if (directory === '') return wrongUsage(command, ['-config_dir is needed']);

  const directoryProblem = await findDirectoryProblem(directory);
  if (directoryProblem !== undefined) return { exitCode: failedExitCode, errors: `${directoryProblem}\n` };
  const load = await loadRuleFiles({
    directory,
    labelRoot: directory,
    mergeDomains: merge_domain_configs,
    ignoreDotFiles: ignore_dot_files,
  });
  return {
    exitCode: load.ok ? 0 : failedExitCode,
    output: json ? toJson(load, directory) : toText(load, directory),
  };
}

async function findDirectoryProblem(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? undefined : `-config_dir ${path}: not a folder`;
  } catch (error) {
    return `-config_dir ${path}: ${isMissingFile(error) ? 'the folder does not exist' : String(error)}`;
  }
}

function toText(load: RuleLoad, directory: string): string {
  const lines = load.ok
    ? [
        ...load.warnings.map((warning) => formatProblem(withPath(warning, directory, 'warning: '))),
        `ok: ${formatCount(load.rules.domains.size, 'domain')}, ${formatCount(load.rules.ruleCount, 'rule')}`,
      ]
    : [
        ...load.problems.map((problem) => formatProblem(withPath(problem, directory))),
        `not ok: ${formatCount(load.problems.length, 'problem')}${load.problems.length < maxProblems ? '' : ' or more'}`,
      ];
  return lines.map((line) => `${line}\n`).join('');
}

function toJson(load: RuleLoad, directory: string): string {
  const findings = load.ok
    ? {
        ok: true,
        domains: load.rules.domains.size,
        rules: load.rules.ruleCount,
        problems: [],
        warnings: load.warnings.map((warning) => withPath(warning, directory)),
      }
    : { ok: false, problems: load.problems.map((problem) => withPath(problem, directory)), warnings: [] };
  return `${JSON.stringify(findings, null, 2)}\n`;
}

/** The problem with a path relative to the working directory. */
function withPath(problem: RuleProblem, directory: string, prefix = ''): RuleProblem {
  const source = problem.source === directory ? directory : join(directory, problem.source);
  return { ...problem, source, message: prefix + problem.message };
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
