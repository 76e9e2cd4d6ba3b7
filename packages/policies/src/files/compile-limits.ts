import { runSteps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import { getTrialDocument, type RuleDocument } from '@tollgate/rules/rule-document';
import type { RuleNode } from '@tollgate/rules/rule-set';
import type { PolicyDocument } from './documents.ts';
import { type Finding, toFinding } from './finding.ts';

/** Rules whose `source` identifies the document that they are of. */
export interface LabelledRules {
  readonly document: PolicyDocument;
  readonly rules: RuleDocument;
}

interface CompiledLimits {
  readonly domains: ReadonlyMap<string, RuleNode>;
  readonly ruleCount: number;
  readonly findings: readonly Finding[];
}

/** Compiles the limits of all objects together; no two may define the same domain. */
export function compileLimits(labelled: readonly LabelledRules[]): CompiledLimits {
  const byLabel = new Map(labelled.map(({ document, rules }) => [rules.source, document]));
  const locate =
    (severity: Finding['severity']) =>
    (problem: RuleProblem): readonly Finding[] => {
      const document = byLabel.get(problem.source);
      return document === undefined ? [] : [toFinding(withFileNames(problem, byLabel), document, severity)];
    };
  const inForce = labelled
    .map(({ rules }) => rules)
    .filter(({ trial, descriptors }) => {
      return trial === undefined || descriptors.length > 0;
    });
  const onTrial = labelled.flatMap(({ rules }) => getTrialDocument(rules) ?? []);
  const compiled = runSteps(compileRules(inForce, { mergeDomains: false }));
  const trials = runSteps(compileRules(onTrial, { mergeDomains: false }));
  const ofTrials = trials.ok ? [] : trials.problems.flatMap(locate('problem'));
  if (!compiled.ok) {
    const findings = [...compiled.problems.flatMap(locate('problem')), ...ofTrials];
    return { domains: new Map(), ruleCount: 0, findings };
  }
  const { domains, ruleCount } = compiled.rules;
  return { domains, ruleCount, findings: [...compiled.warnings.flatMap(locate('warning')), ...ofTrials] };
}

/** Hints name the place of another definition by its label. */
function withFileNames(problem: RuleProblem, byLabel: ReadonlyMap<string, PolicyDocument>): RuleProblem {
  if (problem.hint === undefined) return problem;
  const hint = problem.hint.replace(/document \d+/g, (label) => byLabel.get(label)?.source.path ?? label);
  return { ...problem, hint };
}
