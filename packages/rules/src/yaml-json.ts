import type { JsonObject, JsonValue } from './rule-document.ts';
import type { Charge } from './yaml-fields.ts';
import { isMergeKey } from './yaml-fields.ts';
import { isNullText, parseBoolean, parseFloatText, parseInteger } from './yaml-scalar.ts';
import { yamlKind } from './yaml-table.ts';
import type { YamlTree } from './yaml-tree.ts';

type JsonResult = { ok: true; object: JsonObject } | { ok: false; node: number; reason: string };

/** Reads a mapping as a JSON object with the types of YAML 1.1. `charge` says when the budget for reading is used up. */
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

function readValue(read: Read, aliasOrNode: number, depth: number): JsonValue {
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

function readArray(read: Read, sequence: number, depth: number): JsonValue[] {
  const { tree, problems } = read;
  const values: JsonValue[] = [];
  const end = tree.next(sequence);
  for (let item = sequence + 1; item < end && problems.length === 0; item = tree.next(item))
    values.push(readValue(read, item, depth + 1));
  return values;
}

function readObject(read: Read, mapping: number, depth: number): JsonObject {
  const { tree, problems } = read;
  const object: Record<string, JsonValue> = {};
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

/** Adds what a `<<` brings and the object itself does not have. */
function mergeInto(read: Read, object: Record<string, JsonValue>, valueNode: number, depth: number): void {
  const merged = readValue(read, valueNode, depth + 1);
  const sources: readonly JsonValue[] = isList(merged) ? merged : [merged];
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

/** Array.isArray, which by itself does not narrow a readonly array. */
const isList = (value: JsonValue): value is readonly JsonValue[] => Array.isArray(value);

/** Sets an own property whatever its name; plain assignment of `__proto__` would change the prototype instead. */
function setOwn(object: Record<string, JsonValue>, name: string, value: JsonValue): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function scalarValue(tree: YamlTree, node: number): JsonValue {
  const text = tree.text(node);
  if (!tree.isPlain(node)) return flat(text);
  if (isNullText(text)) return null;
  return parseBoolean(text) ?? parseInteger(text) ?? parseFloatText(text) ?? flat(text);
}

/** A copy, so that rules do not keep the whole text of their file alive. */
const flat = (text: string) => [text.slice(0, 1), text.slice(1)].join('');
