import { readFile } from 'node:fs/promises';
import { describeFlags, type FlagValues, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { formatProblem } from '@tollgate/rules/problem';
import { loadRuleFiles } from '../rules/file-source.ts';
import { ruleFileFlags } from './check-rules.ts';
import { type CaseResult, parseTestCases, runTestCase } from './test-cases.ts';

const command = 'tollgate-ratelimit test';

const flags = {
  ...ruleFileFlags,
  json: { kind: 'switch', doc: 'Print the results as JSON.' },
} as const;

const help = `${command} <folder of rule files> <file of cases>... [flags]

Decides the requests of the cases by the rules, without a running service, and compares the decisions. Counters start at 0
in each case.

  cases:
    - name: the eleventh request of a free user is refused
      domain: shop
      descriptors: ['plan=free,user=alice']
      times: 11                            # default 1; the last decision is compared
      hits_addend: 1                       # default 1
      code: OVER_LIMIT                     # or OK
      limits:                              # one for each descriptor: none, unlimited, replaced, or some of these fields
        - { rule: shop.plan_free.user, requests_per_unit: 10, unit: minute, remaining: 0, code: OVER_LIMIT }

A limit may also have a period, instead of a unit, and a time_zone.
A descriptor is key=value,key2=value2, or a list such as [{ key: path, value: 'a=b' }].
Rules that are valid but look wrong are listed as warnings; they do not fail the test.

${describeFlags(flags)}
Exits with 0 when all cases pass, 1 when one fails or a file is invalid, 2 when the arguments are invalid.
`;

/** Runs the command with the arguments after `test`. */
export async function testRules(args: readonly string[]): Promise<Outcome> {
  const paths = args.filter((arg) => !arg.startsWith('-'));
  const parsed = parseFlags(
    flags,
    args.filter((arg) => arg.startsWith('-')),
  );
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'wrong') return wrongUsage(command, parsed.problems);
  const [directory, ...files] = paths;
  if (directory === undefined || files.length === 0) {
    return wrongUsage(command, ['a folder of rule files and a file of cases are needed']);
  }
  try {
    return await runFiles(directory, files, parsed.values);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return { exitCode: 1, errors: `${error.message}\n` };
  }
}

/** @throws Error of the file system. */
async function runFiles(
  directory: string,
  files: readonly string[],
  options: FlagValues<typeof flags>,
): Promise<Outcome> {
  const { merge_domain_configs: mergeDomains, ignore_dot_files: ignoreDotFiles, json } = options;
  const load = await loadRuleFiles({ directory, labelRoot: directory, mergeDomains, ignoreDotFiles });
  if (!load.ok) {
    return { exitCode: 1, errors: load.problems.map((problem) => `${formatProblem(problem)}\n`).join('') };
  }
  const results: FileResult[] = [];
  for (const file of files) {
    const read = parseTestCases(await readFile(file, 'utf8'));
    if (!read.ok) return { exitCode: 1, errors: `${file}: ${read.problem}\n` };
    for (const test of read.value) results.push({ file, ...(await runTestCase(load.rules, test)) });
  }
  const failed = results.filter(({ ok }) => !ok).length;
  const passed = results.length - failed;
  const output = json
    ? `${JSON.stringify({ passed, failed, cases: results, warnings: load.warnings }, null, 2)}\n`
    : [
        ...load.warnings.map((warning) => `warning ${formatProblem(warning)}\n`),
        ...results.map(formatResult),
        `${passed} passed, ${failed} failed\n`,
      ].join('');
  return { exitCode: failed === 0 ? 0 : 1, output };
}

type FileResult = CaseResult & { readonly file: string };

function formatResult({ name, ok, file, line, differences }: FileResult): string {
  if (ok) return `ok      ${name}\n`;
  return [`FAILED  ${name} (${file}:${line})\n`, ...differences.map((text) => `        ${text}\n`)].join('');
}
