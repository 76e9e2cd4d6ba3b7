import { runSteps, type Steps } from '@tollgate/kit/time';
import { parseFirstDocument } from '@tollgate/yaml/first-document';
import type { YamlTree } from '@tollgate/yaml/tree';
import { type CompileOptions, compileRules, maxProblems, type RulesResult } from '../compile/compile.ts';
import { maxWarnings } from '../compile/warnings.ts';
import type { RuleDocument } from '../definition/document.ts';
import type { RuleProblem } from '../definition/problem.ts';
import { checkRuleFile, type ReportNode } from './check-rule-file.ts';
import { readRuleFile } from './rule-file.ts';

/** One rule file. */
export interface RuleFile {
  /** Label for messages. */
  readonly source: string;
  readonly text: string;
}

/**
 * Loads rule files: YAML 1.1, the first document of each. All or nothing: a problem in any file
 * fails with the problems of all files (1000 at most), each with line and column (contract 1.12).
 */
export function loadRuleFiles(files: readonly RuleFile[], options: CompileOptions): RulesResult {
  return runSteps(loadRuleFilesInSteps(files, options));
}

/**
 * `loadRuleFiles` in steps of a few milliseconds, for files with most rules in the top-level list.
 * A descriptor with its content is one step, and so is parsing a file without such a list.
 */
export function* loadRuleFilesInSteps(
  files: readonly RuleFile[],
  options: CompileOptions,
): Steps<RulesResult> {
  const problems: RuleProblem[] = [];
  const warnings: RuleProblem[] = [];
  const documents: RuleDocument[] = [];
  for (const file of files) {
    const document = yield* decodeFile(file, problems, warnings);
    if (document !== undefined) documents.push(document);
  }
  const compiled = yield* compileRules(documents, options);
  if (problems.length === 0) {
    if (!compiled.ok || warnings.length === 0) return compiled;
    const sorted = inFileOrder(files, [...warnings, ...compiled.warnings]);
    return { ...compiled, warnings: sorted.slice(0, maxWarnings) };
  }
  const all = compiled.ok ? problems : inFileOrder(files, [...problems, ...compiled.problems]);
  return { ok: false, problems: all.slice(0, maxProblems) };
}

function* decodeFile(
  { source, text }: RuleFile,
  problems: RuleProblem[],
  warnings: RuleProblem[],
): Steps<RuleDocument | undefined> {
  const parsed = yield* parseFirstDocument(text);
  if (!parsed.ok) {
    const message = `error loading config file: ${parsed.error.reason}`;
    problems.push({ source, ...parsed.error.position, path: '', message });
    return undefined;
  }
  const { tree, ignoredFrom } = parsed;
  if (ignoredFrom !== undefined && warnings.length < maxWarnings)
    warnings.push({ source, ...ignoredFrom, path: '', message: secondDocument });
  const report = reporter(tree, source, problems, maxProblems);
  const warn = reporter(tree, source, warnings, maxWarnings);
  yield* checkRuleFile(tree, report);
  const before = problems.length;
  const document = yield* readRuleFile(tree, source, report, warn);
  // Without a mapping at the root there is nothing to check, and "empty domain" would mislead.
  return problems.length > before && document.at === undefined ? undefined : document;
}

const secondDocument =
  'all from here on is ignored, for only the first YAML document of a file is read: move it into a file of its own';

/** Collects problems of the nodes of a file, up to a limit. */
function reporter(tree: YamlTree, source: string, into: RuleProblem[], most: number): ReportNode {
  return (node, path, message, hint) => {
    if (into.length >= most) return;
    into.push({
      source,
      ...tree.position(node),
      path,
      message,
      ...(hint === undefined ? undefined : { hint }),
    });
  };
}

/** Orders problems by file; within a file, form precedes meaning. */
function inFileOrder(files: readonly RuleFile[], problems: readonly RuleProblem[]): RuleProblem[] {
  const rank = new Map(files.map(({ source }, index) => [source, index]));
  return problems.toSorted((a, b) => (rank.get(a.source) ?? 0) - (rank.get(b.source) ?? 0));
}
