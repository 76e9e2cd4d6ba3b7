import { meantName } from '@tollgate/kit/spelling';
import { Value } from 'typebox/value';
import { testFile } from './format.ts';

/** Gets the JSON path of a field, and what is wrong with it. */
export type Report = (field: string, message: string) => void;

/** Says what differs from the schema, in the terms of the file. */
export function checkForm(value: unknown, report: Report): void {
  const seen = new Set<string>();
  for (const { keyword, instancePath, params, message } of Value.Errors(testFile, value)) {
    // Each member that is not known has an error of its own, too.
    if (keyword === 'boolean') continue;
    const path = toJsonPath(instancePath);
    const names: Partial<Record<string, unknown>> = { ...params };
    if (keyword === 'additionalProperties')
      for (const name of toTexts(names.additionalProperties))
        report(join(path, name), `unknown field${suggest(name)}`);
    else if (keyword === 'required')
      for (const name of toTexts(names.requiredProperties)) report(join(path, name), 'is required');
    else if (!seen.has(path)) report(path, keyword === 'enum' ? listAllowed(names.allowedValues) : message);
    seen.add(path);
  }
}

const listAllowed = (allowed: unknown): string => `must be one of ${toTexts(allowed).join(', ')}`;

const toTexts = (list: unknown): readonly string[] => (Array.isArray(list) ? list.map(String) : []);

/** All names of the format, at any place. */
const fieldNames: readonly string[] = [
  ...new Set([...JSON.stringify(testFile).matchAll(/"([a-zA-Z]+)":\{/g)].map(([, name = '']) => name)),
];

function suggest(name: string): string {
  const meant = meantName(name, fieldNames);
  return meant === undefined || meant === name ? '' : ` (did you mean ${meant}?)`;
}

/** `/tests/0/name` as `tests[0].name`. */
function toJsonPath(pointer: string): string {
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce((path, step) => (/^\d+$/.test(step) ? `${path}[${step}]` : join(path, step)), '');
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
