import type { Html } from '@tollgate/kit/html';
import { isMapping } from '@tollgate/rules/resource-fields';
import { formatYaml } from '@tollgate/yaml/documents';
import { structuredPatch } from 'diff';
import { unifiedDiff } from '../../ui/code.ts';
import { emptyState } from '../../ui/messages.ts';

/** Lines around a difference. */
const contextLines = 3;

/** Differences cost time that grows with the square of their number: 0.1 s for as many. */
const maxDifferences = 1000;

/** The difference of two texts. */
export function textDifference(before: string, after: string): Html {
  const options = { context: contextLines, maxEditLength: maxDifferences };
  const patch = structuredPatch('', '', before, after, '', '', options);
  if (patch === undefined)
    return emptyState(`More than ${maxDifferences} lines differ: compare the two texts with diff -u.`);
  return patch.hunks.length === 0
    ? emptyState('Both have the same text.')
    : unifiedDiff('Difference', patch.hunks);
}

/** The difference of two values as YAML, without their comments and the order of their keys. */
export function valueDifference(before: unknown, after: unknown): Html {
  return textDifference(formatYaml(before), formatYaml(orderKeys(before, after)));
}

/** A value with the keys in the order of another one. */
function orderKeys(model: unknown, value: unknown): unknown {
  if (Array.isArray(model) && Array.isArray(value))
    return value.map((item: unknown, index): unknown => orderKeys(model[index], item));
  if (!isMapping(model) || !isMapping(value)) return value;
  const known = Object.keys(model).filter((key) => key in value);
  const keys = new Set([...known, ...Object.keys(value)]);
  return Object.fromEntries([...keys].map((key) => [key, orderKeys(model[key], value[key])]));
}
