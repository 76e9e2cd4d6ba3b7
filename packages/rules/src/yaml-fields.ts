import { yamlKind } from './yaml-table.ts';
import type { YamlTree } from './yaml-tree.ts';

/** Every key that a rule file may have, on whatever level. */
const fieldNames = [
  'domain',
  'key',
  'value',
  'descriptors',
  'rate_limit',
  'unit',
  'requests_per_unit',
  'unlimited',
  'shadow_mode',
  'quota_mode',
  'name',
  'replaces',
  'detailed_metric',
  'value_to_metric',
  'share_threshold',
  'metadata',
] as const;

/** A key of a rule file. */
export type FieldName = (typeof fieldNames)[number];

const fieldIndex: ReadonlyMap<string, number> = new Map(fieldNames.map((name, index) => [name, index]));

/** Whether a text is a key that rule files may have. */
export const isFieldName = (text: string): text is FieldName => fieldIndex.has(text);

/** The value node of each field by its index in `fieldNames`; 0 (the root, never a value) where the field is absent. */
export type Fields = readonly number[];

/** The value node of a field, or undefined. */
export function fieldNode(fields: Fields, name: FieldName): number | undefined {
  return fields[fieldIndex.get(name) ?? -1] || undefined;
}

const noFields: Fields = fieldNames.map(() => 0);

/** Says, before each mapping that merges bring in, whether there is budget for it. */
export type Charge = (node: number, depth: number) => boolean;

/**
 * Reads the known fields of a mapping. Of equal keys the last wins; keys of `<<` fill in what the mapping itself does
 * not have, the first of several mappings first.
 */
export function readFields(tree: YamlTree, mapping: number, depth: number, charge: Charge): Fields {
  const fields = noFields.slice();
  let hasMerge = false;
  const end = tree.next(mapping);
  for (let key = mapping + 1; key < end; ) {
    const value = tree.next(key);
    const index = fieldIndex.get(tree.text(tree.resolve(key)));
    if (index !== undefined) fields[index] = value;
    else if (isMergeKey(tree, key)) hasMerge = true;
    key = tree.next(value);
  }
  if (!hasMerge) return fields;
  for (let key = mapping + 1; key < end; ) {
    const value = tree.next(key);
    if (isMergeKey(tree, key)) for (const source of mergeSources(tree, value)) fillIn(source);
    key = tree.next(value);
  }
  return fields;

  function fillIn(source: number): void {
    if (!charge(source, depth + 1)) return;
    const merged = readFields(tree, source, depth + 1, charge);
    for (let i = 0; i < merged.length; i++) if (fields[i] === 0) fields[i] = merged[i] ?? 0;
  }
}

/** Whether a mapping's key node is the plain `<<`. */
export function isMergeKey(tree: YamlTree, key: number): boolean {
  return tree.isPlain(key) && tree.text(key) === '<<';
}

/** The mappings that the value of a `<<` names: one, or a list of them. Others are ignored. */
function mergeSources(tree: YamlTree, valueNode: number): readonly number[] {
  const value = tree.resolve(valueNode);
  if (tree.kind(value) === yamlKind.mapping) return [value];
  if (tree.kind(value) !== yamlKind.sequence) return [];
  const sources: number[] = [];
  for (let item = value + 1; item < tree.next(value); item = tree.next(item)) {
    const source = tree.resolve(item);
    if (tree.kind(source) === yamlKind.mapping) sources.push(source);
  }
  return sources;
}
