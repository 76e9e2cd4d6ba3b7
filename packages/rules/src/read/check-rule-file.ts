import { runSteps, type Steps } from '@tollgate/kit/time';
import { yamlKind } from '@tollgate/yaml/node-table';
import { parseBoolean, parseInteger, type ScalarType, scalarType } from '@tollgate/yaml/scalars';
import type { YamlTree } from '@tollgate/yaml/tree';
import { descriptorsPerStep } from '../definition/document.ts';
import type { FieldName } from '../definition/spelling.ts';
import { isFieldName, isMergeKey } from './rule-file-fields.ts';

/** Numbers that rules cannot hold, anywhere outside metadata. */
export const refusedTypes: ReadonlySet<ScalarType> = new Set(['float', 'bigInt']);

/** Reports a problem of a node. */
export type ReportNode = (node: number, path: string, message: string, hint?: string) => void;

/**
 * Checks the form of a whole file as the original does: only known keys (on any level), only lists
 * of mappings, no floats and no integers beyond 64 bits. The content of `metadata` is not checked
 * (contract 1.12).
 */
export function* checkRuleFile(tree: YamlTree, report: ReportNode): Steps<void> {
  const check: Check = { tree, report, path: [], unchecked: undefined, items: 0 };
  if (tree.size > 0 && tree.kind(0) === yamlKind.mapping) yield* checkLarge(check, 0);
}

interface Check {
  readonly tree: YamlTree;
  readonly report: ReportNode;
  /** Steps to the current node; joined only for a problem. */
  readonly path: (string | number)[];
  /** 1 for nodes inside metadata, which an alias elsewhere may refer to. */
  unchecked: Uint8Array | undefined;
  /** List items checked so far. */
  items: number;
}

const metadataField: FieldName = 'metadata';

/** Larger mappings are checked in steps. */
const largeNodes = 1000;

/** `checkMapping` in steps. */
function* checkLarge(check: Check, mapping: number): Steps<void> {
  const { tree, path } = check;
  const end = tree.next(mapping);
  for (let key = mapping + 1; key < end; ) {
    const value = tree.next(key);
    const name = checkKey(check, key);
    path.push(name);
    if (name === metadataField) markUnchecked(check, value);
    else if (tree.kind(value) === yamlKind.sequence) yield* checkItems(check, value);
    else checkValue(check, value);
    path.pop();
    key = tree.next(value);
  }
}

function checkMapping(check: Check, mapping: number): void {
  const { tree, path } = check;
  const end = tree.next(mapping);
  for (let key = mapping + 1; key < end; ) {
    const value = tree.next(key);
    const name = checkKey(check, key);
    if (name === metadataField) markUnchecked(check, value);
    else {
      path.push(name);
      checkValue(check, value);
      path.pop();
    }
    key = tree.next(value);
  }
}

/** Reports an unknown key; returns the key's text. */
function checkKey({ tree, report, path }: Check, keyNode: number): string {
  const key = tree.resolve(keyNode);
  const text = tree.text(key);
  const isText = tree.kind(key) === yamlKind.scalar && !(tree.isPlain(key) && scalarType(text) !== 'text');
  if (!isText)
    report(keyNode, joinPath(path), `config error, key is not of type string: ${shown(tree, key)}`);
  else if (!isFieldName(text) && !isMergeKey(tree, key))
    report(keyNode, joinPath(path), `config error, unknown key '${text}'`);
  return text;
}

function checkValue(check: Check, node: number): void {
  const { tree, report, path } = check;
  if (tree.kind(node) === yamlKind.alias) {
    checkAlias(check, node);
    return;
  }
  switch (tree.kind(node)) {
    case yamlKind.mapping:
      checkMapping(check, node);
      return;
    case yamlKind.sequence:
      runSteps(checkItems(check, node));
      return;
    default: {
      if (!tree.isPlain(node)) return;
      const text = tree.text(node);
      const type = scalarType(text);
      if (!refusedTypes.has(type)) return;
      const number = type === 'float' ? `the float ${text}` : `${text}, beyond a signed 64-bit integer`;
      const hint = `${path.at(-1)} is ${number}; put it in quotes if it is text`;
      report(node, joinPath(path), 'error checking config', hint);
    }
  }
}

function* checkItems(check: Check, sequence: number): Steps<void> {
  const { tree, report, path } = check;
  const end = tree.next(sequence);
  for (let item = sequence + 1, index = 0; item < end; item = tree.next(item), index++) {
    path.push(index);
    if (tree.kind(item) === yamlKind.mapping && tree.next(item) - item > largeNodes)
      yield* checkLarge(check, item);
    else if (tree.kind(tree.resolve(item)) === yamlKind.mapping) checkValue(check, item);
    else {
      const message = `config error, yaml file contains list of type other than map: ${shown(tree, tree.resolve(item))}`;
      report(item, joinPath(path), message);
    }
    path.pop();
    check.items++;
    if (check.items % descriptorsPerStep === 0) yield;
  }
}

/** The target of an alias was checked where it is defined, unless that is inside metadata. */
function checkAlias(check: Check, alias: number): void {
  const target = check.tree.resolve(alias);
  if (check.unchecked?.[target] !== 1) return;
  check.unchecked.fill(0, target, check.tree.next(target));
  checkValue(check, target);
}

function markUnchecked(check: Check, node: number): void {
  check.unchecked ??= new Uint8Array(check.tree.size);
  check.unchecked.fill(1, node, check.tree.next(node));
}

/** Maximum length of a node in a message. */
const maxShown = 100;

/** A node as the original prints it: `<nil>`, `true`, `1`, `[a b]`, `map[…]`. */
function shown(tree: YamlTree, node: number): string {
  const text = describe(tree, node);
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}

function describe(tree: YamlTree, node: number): string {
  if (tree.kind(node) === yamlKind.mapping) return 'map[…]';
  if (tree.kind(node) === yamlKind.sequence) return describeList(tree, node);
  const text = tree.text(node);
  if (!tree.isPlain(node)) return text;
  const type = scalarType(text);
  if (type === 'null') return '<nil>';
  if (type === 'bool') return String(parseBoolean(text));
  return type === 'int' ? String(parseInteger(text)) : text;
}

function describeList(tree: YamlTree, list: number): string {
  const items: string[] = [];
  const end = tree.next(list);
  let length = 0;
  for (let item = list + 1; item < end && length <= maxShown; item = tree.next(item)) {
    const target = tree.resolve(item);
    const text = tree.kind(target) === yamlKind.sequence ? '[…]' : describe(tree, target);
    items.push(text);
    length += text.length + 1;
  }
  return `[${items.join(' ')}]`;
}

function joinPath(path: readonly (string | number)[]): string {
  let joined = '';
  for (const step of path)
    joined += typeof step === 'number' ? `[${step}]` : joined === '' ? step : `.${step}`;
  return joined;
}
