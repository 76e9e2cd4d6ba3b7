import { formatProblem } from '@tollgate/rules/problem';
import { parse } from '@tollgate/yaml/documents';
import { type CompiledPolicy, compilePolicy } from '../../src/compile/compile.ts';
import type { PolicyResource } from '../../src/definition/spec.ts';
import { readPolicy } from '../../src/read/read-policy.ts';

/** A manifest with this spec, which is indented by two spaces. */
export function manifestText(spec: string, name = 'orders'): string {
  return `apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: ${name}, namespace: shop }\nspec:\n${spec}\n`;
}

/** Problems of the form of a manifest, each with its position in the text. */
export function readProblems(text: string): readonly string[] {
  const document = parseOne(text);
  const result = readPolicy(document.value, 'a.yaml');
  if (result.ok) return [];
  return result.problems.map((problem) => {
    const { line, column } = document.positionOf(problem.field ?? '');
    return `${line}:${column} ${formatProblem(problem)}`;
  });
}

/** The policy with this spec, whose form is valid. */
export function readSpec(spec: string, name?: string): PolicyResource {
  const result = readPolicy(parseOne(manifestText(spec, name)).value, 'a.yaml');
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result.resource;
}

export function compileProblems(spec: string): readonly string[] {
  const result = compilePolicy(readSpec(spec));
  return result.ok ? [] : result.problems.map(formatProblem);
}

export function compileWarnings(spec: string): readonly string[] {
  const result = compilePolicy(readSpec(spec));
  return result.ok ? result.warnings.map(formatProblem) : ['invalid'];
}

export function compileValid(spec: string): CompiledPolicy {
  const result = compilePolicy(readSpec(spec));
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result.policy;
}

function parseOne(text: string) {
  const parsed = parse({ text, linesBefore: 0 });
  const document = parsed.ok ? parsed.documents[0] : undefined;
  if (document === undefined) throw new Error(JSON.stringify(parsed));
  return document;
}
