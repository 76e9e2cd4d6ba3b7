import type { Json, JsonObject } from '@tollgate/kit/json';
import { yamlKind } from '@tollgate/yaml/node-table';
import { parseScalar } from '@tollgate/yaml/scalars';
import type { YamlTree } from '@tollgate/yaml/tree';
import type { NamedField } from '../definition/fields.ts';
import { type FieldName, fieldNames } from '../definition/spelling.ts';

const fieldIndex: ReadonlyMap<string, number> = new Map(fieldNames.map((name, index) => [name, index]));

/** Whether a text is a known key. */
export const isFieldName = (text: string): text is FieldName => fieldIndex.has(text);

/**
 * The value node of each field by its index in `fieldNames`; 0 (the root, never a value) where the
 * field is absent.
 */
export type Fields = readonly number[];

/** The value node of a field, or undefined. */
export function fieldNode(fields: Fields, name: string): number | undefined {
  return fields[fieldIndex.get(name) ?? -1] || undefined;
}

/** Rows and their indexes in `Fields`. */
export type IndexedRows = readonly { readonly row: NamedField; readonly index: number }[];

export const indexRows = (rows: readonly NamedField[]): IndexedRows =>
  rows.map((row) => ({ row, index: fieldIndex.get(row.file) ?? -1 }));

/** The rows of the fields that a mapping has, which are few of them. */
export function presentRows(fields: Fields, rows: IndexedRows): readonly NamedField[] {
  const present: NamedField[] = [];
  for (const { row, index } of rows) if ((fields[index] ?? 0) !== 0) present.push(row);
  return present;
}

const noFields: Fields = fieldNames.map(() => 0);

/** Returns whether the budget allows reading a node. */
export type Charge = (node: number, depth: number) => boolean;

/**
 * Reads the known fields of a mapping. Of equal keys the last wins; keys of `<<` fill in what the
 * mapping itself does not have, the first of several mappings first.
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

/** The mappings in the value of a `<<`: one, or a list. Other values are ignored. */
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

type JsonResult = { ok: true; object: JsonObject } | { ok: false; node: number; reason: string };

/** Reads a mapping as a JSON object with the types of YAML 1.1. */
export function readJsonObject(tree: YamlTree, node: number, depth: number, charge: Charge): JsonResult {
  const problems: JsonProblem[] = [];
  const mapping = tree.resolve(node);
  if (tree.kind(mapping) !== yamlKind.mapping) return { ok: false, node, reason: 'it must be a mapping' };
  const object = readObject({ tree, charge, problems }, mapping, depth);
  const problem = problems[0];
  return problem === undefined ? { ok: true, object } : { ok: false, ...problem };
}

interface JsonProblem {
  readonly node: number;
  readonly reason: string;
}

interface Read {
  readonly tree: YamlTree;
  readonly charge: Charge;
  readonly problems: JsonProblem[];
}

function readValue(read: Read, aliasOrNode: number, depth: number): Json {
  const { tree, charge, problems } = read;
  const node = tree.resolve(aliasOrNode);
  if (!charge(node, depth)) {
    problems.push({ node, reason: 'it is too large' });
    return null;
  }
  if (tree.kind(node) === yamlKind.mapping) return readObject(read, node, depth);
  if (tree.kind(node) === yamlKind.sequence) return readArray(read, node, depth);
  const value = scalarValue(tree, node);
  if (typeof value === 'number' && !Number.isFinite(value))
    problems.push({ node, reason: `${tree.text(node)} is not a number that JSON has` });
  return value;
}

function readArray(read: Read, sequence: number, depth: number): Json[] {
  const { tree, problems } = read;
  const values: Json[] = [];
  const end = tree.next(sequence);
  for (let item = sequence + 1; item < end && problems.length === 0; item = tree.next(item))
    values.push(readValue(read, item, depth + 1));
  return values;
}

function readObject(read: Read, mapping: number, depth: number): JsonObject {
  const { tree, problems } = read;
  const object: Record<string, Json> = {};
  const merges: number[] = [];
  const end = tree.next(mapping);
  for (let key = mapping + 1; key < end && problems.length === 0; ) {
    const value = tree.next(key);
    const keyScalar = tree.resolve(key);
    if (isMergeKey(tree, key)) merges.push(value);
    else if (tree.kind(keyScalar) === yamlKind.scalar)
      setOwn(object, flat(tree.text(keyScalar)), readValue(read, value, depth + 1));
    else problems.push({ node: key, reason: 'a key is not text' });
    key = tree.next(value);
  }
  for (const value of merges) mergeInto(read, object, value, depth);
  return object;
}

/** Adds the keys of a `<<` that the object itself does not have. */
function mergeInto(read: Read, object: Record<string, Json>, valueNode: number, depth: number): void {
  const merged = readValue(read, valueNode, depth + 1);
  const sources: readonly Json[] = isList(merged) ? merged : [merged];
  for (const source of sources) {
    if (typeof source !== 'object' || source === null || isList(source)) {
      read.problems.push({ node: valueNode, reason: '<< needs a mapping or a list of mappings' });
      return;
    }
    for (const [name, value] of Object.entries(source)) {
      if (!Object.hasOwn(object, name)) setOwn(object, name, value);
    }
  }
}

/** `Array.isArray` does not narrow a readonly array. */
const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

/**
 * Sets an own property whatever its name; plain assignment of `__proto__` would change the
 * prototype instead.
 */
function setOwn(object: Record<string, Json>, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function scalarValue(tree: YamlTree, node: number): Json {
  const text = tree.text(node);
  const value = tree.isPlain(node) ? parseScalar(text) : text;
  return typeof value === 'string' ? flat(value) : value;
}

/** A copy, so that rules do not keep the whole text of their file alive. */
const flat = (text: string) => [text.slice(0, 1), text.slice(1)].join('');
