import type { JsonObject } from '@tollgate/kit/json';
import type { Steps } from '@tollgate/kit/time';
import { maxDepth } from '@tollgate/yaml/first-document';
import { yamlKind } from '@tollgate/yaml/node-table';
import { isNullText, parseBoolean, parseInteger, scalarType } from '@tollgate/yaml/scalars';
import type { YamlTree } from '@tollgate/yaml/tree';
import {
  type DescriptorSpec,
  type DomainOptions,
  descriptorsPerStep,
  fillIn,
  type LimitSpec,
  type RuleDocument,
  setField,
} from '../definition/document.ts';
import {
  descriptorFields,
  domainFields,
  domainOptions,
  type NamedField,
  rows,
} from '../definition/fields.ts';
import type { Location } from '../definition/problem.ts';
import { fileSpelling } from '../definition/spelling.ts';
import { type ReportNode, refusedTypes } from './check-rule-file.ts';
import {
  type Fields,
  fieldNode,
  type IndexedRows,
  indexRows,
  presentRows,
  readFields,
  readJsonObject,
} from './rule-file-fields.ts';

/**
 * Maximum number of nodes that aliases and merges may add to those of the text: nested aliases can
 * expand to more than any memory holds.
 */
const maxAliasedNodes = 1_000_000;

/**
 * Reads the rules of one file. Reports values of the wrong type, except problems of form, which
 * `checkRuleFile` reports. Warns about fields that are missing or have no effect.
 */
export function* readRuleFile(
  tree: YamlTree,
  source: string,
  report: ReportNode,
  warn: ReportNode,
): Steps<RuleDocument> {
  const budget = tree.size + maxAliasedNodes;
  const read: Read = { tree, report, warn, texts: new Map(), budget, refused: false, descriptors: 0 };
  if (tree.size > 0 && tree.kind(0) !== yamlKind.mapping && !isNull(tree, 0)) {
    const found = tree.kind(0) === yamlKind.sequence ? 'a list' : 'a single value';
    fail(read, 0, '', `expected a mapping with domain and descriptors, found ${found}`);
    return { source, spelling: fileSpelling, domain: '', descriptors: [] };
  }
  const fields = tree.size > 0 && tree.kind(0) === yamlKind.mapping ? fieldsOf(read, 0, 0) : [];
  const domain = textField(read, { fields, depth: 0, path: '' }, 'domain') ?? '';
  warnOfMisplaced(read, fields, domain, notOfDomain);
  const place: Place = { fields, depth: 0, path: domain };
  const present = presentRows(fields, optionRows);
  const options: DomainOptions = fillIn({}, present, (field) => readField(read, place, field));
  const descriptors = (yield* descriptorsField(read, place)) ?? [];
  return {
    ...options,
    source,
    spelling: fileSpelling,
    domain,
    descriptors,
    at: 0,
    locate: (at, field) => locate(tree, at, field),
  };
}

interface Read {
  readonly tree: YamlTree;
  readonly report: ReportNode;
  readonly warn: ReportNode;
  /** One copy of each repeated text; a slice of the file would keep the whole file alive. */
  readonly texts: Map<string, string>;
  /** Nodes that may still be read. */
  budget: number;
  /** A limit was exceeded and reported; reading stops. */
  refused: boolean;
  /** Descriptors read so far. */
  descriptors: number;
}

const fail = (read: Read, node: number, path: string, reason: string) =>
  read.report(node, path, `error loading config file: ${reason}`);

/** Counts a node; false when a limit is exceeded, which ends the reading of the file. */
function charge(read: Read, node: number, depth: number): boolean {
  if (read.refused) return false;
  read.budget--;
  if (read.budget > 0 && depth <= maxDepth) return true;
  read.refused = true;
  const what =
    depth > maxDepth ? `nest deeper than ${maxDepth} levels` : `stand for more than ${maxAliasedNodes} nodes`;
  fail(read, node, '', `aliases ${what}`);
  return false;
}

const fieldsOf = (read: Read, mapping: number, depth: number): Fields =>
  readFields(read.tree, mapping, depth, (node, nodeDepth) => charge(read, node, nodeDepth));

/** The fields of a mapping, its depth, and its path for messages. */
interface Place {
  readonly fields: Fields;
  readonly depth: number;
  readonly path: string;
}

function* descriptorsField(read: Read, place: Place): Steps<readonly DescriptorSpec[] | undefined> {
  const { tree } = read;
  const list = listField(read, place, 'descriptors');
  if (list === undefined) return undefined;
  const specs: DescriptorSpec[] = [];
  const end = tree.next(list);
  for (let item = list + 1; item < end; item = tree.next(item)) {
    const mapping = tree.resolve(item);
    if (tree.kind(mapping) !== yamlKind.mapping) continue;
    if (!charge(read, mapping, place.depth + 1)) return undefined;
    specs.push(yield* readDescriptor(read, mapping, place));
    read.descriptors++;
    if (read.descriptors % descriptorsPerStep === 0) yield;
  }
  return specs;
}

/** Rows of a descriptor after its key, which is part of the path of the others. */
const rowsAfterKey = indexRows(rows.descriptor.filter(({ name }) => name !== 'key'));

function* readDescriptor(read: Read, mapping: number, parent: Place): Steps<DescriptorSpec> {
  const depth = parent.depth + 1;
  const fields = fieldsOf(read, mapping, depth);
  const key = textField(read, { ...parent, fields }, 'key') ?? '';
  const place: Place = { fields, depth, path: `${parent.path}.${key}` };
  warnOfMisplaced(read, fields, place.path, notOfDescriptor);
  refuseAtomic(read, place);
  const spec: DescriptorSpec = { key, at: mapping };
  for (const field of presentRows(fields, rowsAfterKey)) {
    const isTree = field.kind === 'descriptors';
    setField(spec, field, isTree ? yield* descriptorsField(read, place) : readField(read, place, field));
  }
  return spec;
}

const optionRows = indexRows(domainOptions);
const limitRows = indexRows(rows.limit);

/**
 * Fields of a `rate_limit` that another part does not have. `checkRuleFile` accepts them on any
 * level.
 */
const limitFieldsNotIn = (part: object) => indexRows(rows.limit.filter(({ name }) => !(name in part)));
const notOfDomain = limitFieldsNotIn(domainFields);
const notOfDescriptor = limitFieldsNotIn(descriptorFields);

function warnOfMisplaced(read: Read, fields: Fields, path: string, misplaced: IndexedRows): void {
  for (const { file: name } of presentRows(fields, misplaced)) {
    read.warn(
      fieldNode(fields, name) ?? 0,
      path,
      `${name} has no effect outside rate_limit: move it into one, or remove it`,
    );
  }
}

/** Where it has no effect, limits would be expected to hold that do not. */
function refuseAtomic(read: Read, { fields, path }: Place): void {
  const node = fieldNode(fields, 'atomic');
  if (node !== undefined) fail(read, node, path, 'atomic belongs beside domain: move it there');
}

/** The value of a field; undefined when it is absent, null, or (reported) of another type. */
function readField(read: Read, place: Place, field: NamedField): unknown {
  switch (field.kind) {
    case 'flag':
      return booleanField(read, place, field.file);
    case 'count':
      return countField(read, place, field);
    case 'names':
      return namesField(read, place, field.file);
    case 'json':
      return jsonField(read, place, field.file);
    case 'limit':
      return limitField(read, place, field.file);
    default:
      return textField(read, place, field.file);
  }
}

function limitField(read: Read, { fields, depth, path }: Place, name: string): LimitSpec | undefined {
  const { tree } = read;
  const node = fieldNode(fields, name);
  if (node === undefined || isNull(tree, node)) return undefined;
  const mapping = tree.resolve(node);
  if (tree.kind(mapping) !== yamlKind.mapping) {
    fail(read, node, path, `${name} must be a mapping, not ${describeNode(tree, mapping)}`);
    return undefined;
  }
  if (!charge(read, mapping, depth)) return undefined;
  const place: Place = { fields: fieldsOf(read, mapping, depth), depth, path };
  warnOfNoCount(read, place.fields, path);
  refuseAtomic(read, place);
  const spec: LimitSpec = { requestsPerUnit: 0, at: mapping };
  return fillIn(spec, presentRows(place.fields, limitRows), (field) => readField(read, place, field));
}

function warnOfNoCount({ tree, warn }: Read, limit: Fields, path: string): void {
  const name = fieldNode(limit, 'unit') === undefined ? 'period' : 'unit';
  const length = fieldNode(limit, name);
  const count = fieldNode(limit, 'requests_per_unit');
  if (length === undefined || isNull(tree, length) || (count !== undefined && !isNull(tree, count))) return;
  const message = `rate_limit has a ${name} but no requests_per_unit, so that every request is refused`;
  warn(length, path, `${message}: add requests_per_unit (0 if that is meant)`);
}

function namesField(read: Read, place: Place, name: string): readonly string[] | undefined {
  const { tree } = read;
  const list = listField(read, place, name);
  if (list === undefined) return undefined;
  const names: string[] = [];
  const end = tree.next(list);
  for (let item = list + 1; item < end; item = tree.next(item)) {
    const mapping = tree.resolve(item);
    if (tree.kind(mapping) !== yamlKind.mapping) continue;
    if (!charge(read, mapping, place.depth)) return undefined;
    names.push(textField(read, { ...place, fields: fieldsOf(read, mapping, place.depth) }, 'name') ?? '');
  }
  return names.length === 0 ? undefined : names;
}

function jsonField(read: Read, { fields, depth, path }: Place, name: string): JsonObject | undefined {
  const { tree } = read;
  const node = fieldNode(fields, name);
  if (node === undefined || isNull(tree, node)) return undefined;
  const result = readJsonObject(tree, node, depth, (child, childDepth) => charge(read, child, childDepth));
  if (result.ok) return result.object;
  if (!read.refused) read.report(result.node, `${path}.${name}`, `error parsing ${name}: ${result.reason}`);
  return undefined;
}

/** The list node of a field; undefined when absent, null, or (reported) not a list. */
function listField(read: Read, { fields, path }: Place, name: string): number | undefined {
  const { tree } = read;
  const node = fieldNode(fields, name);
  if (node === undefined || isNull(tree, node)) return undefined;
  const list = tree.resolve(node);
  if (tree.kind(list) === yamlKind.sequence) return list;
  fail(read, node, path, `${name} must be a list, not ${describeNode(tree, list)}`);
  return undefined;
}

/** A text as written in the source, without type conversion; undefined for null. */
function textField(read: Read, { fields, path }: Place, name: string): string | undefined {
  const { tree } = read;
  const node = fieldNode(fields, name);
  if (node === undefined) return undefined;
  const scalar = tree.resolve(node);
  if (tree.kind(scalar) !== yamlKind.scalar) {
    fail(read, node, path, `${name} must be text, not ${describeNode(tree, scalar)}`);
    return undefined;
  }
  if (isNull(tree, scalar)) return undefined;
  const text = tree.text(scalar);
  // Values are mostly distinct and copied into their composite key; other texts repeat.
  return name === 'value' ? text : sharedText(read.texts, text);
}

function sharedText(texts: Map<string, string>, text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  const copy = copyText(text);
  texts.set(copy, copy);
  return copy;
}

/** A copy that does not keep the source text alive. */
const copyText = (text: string) => [text.slice(0, 1), text.slice(1)].join('');

function booleanField(read: Read, { fields, path }: Place, name: string): boolean | undefined {
  const { tree } = read;
  const node = fieldNode(fields, name);
  if (node === undefined || isNull(tree, node)) return undefined;
  const scalar = tree.resolve(node);
  const value = tree.isPlain(scalar) ? parseBoolean(tree.text(scalar)) : undefined;
  if (value === undefined && !isRefusedNumber(tree, scalar))
    fail(read, node, path, `${name} must be true or false, not ${describeNode(tree, scalar)}`);
  return value;
}

function countField(
  read: Read,
  { fields, path }: Place,
  { file: name, max }: NamedField & { kind: 'count' },
): number | undefined {
  const { tree } = read;
  const node = fieldNode(fields, name);
  if (node === undefined || isNull(tree, node)) return undefined;
  const scalar = tree.resolve(node);
  const count = tree.isPlain(scalar) ? parseInteger(tree.text(scalar)) : undefined;
  if (count !== undefined && count >= 0 && count <= max) return count;
  if (isRefusedNumber(tree, scalar)) return undefined;
  const found = describeNode(tree, scalar);
  fail(read, node, path, `${name} must be a whole number from 0 to ${max}, not ${found}`);
  return undefined;
}

function isNull(tree: YamlTree, node: number): boolean {
  const scalar = tree.resolve(node);
  return tree.isPlain(scalar) && isNullText(tree.text(scalar));
}

/** Floats and numbers beyond 64 bits are reported by `checkRuleFile`. */
const isRefusedNumber = (tree: YamlTree, scalar: number) =>
  tree.isPlain(scalar) && refusedTypes.has(scalarType(tree.text(scalar)));

/** Maximum length of a quoted text. */
const maxQuoted = 100;

function describeNode(tree: YamlTree, node: number): string {
  if (tree.kind(node) === yamlKind.mapping) return 'a mapping';
  if (tree.kind(node) === yamlKind.sequence) return 'a list';
  const text = tree.text(node);
  const quoted = text.length > maxQuoted ? `'${text.slice(0, maxQuoted)}…'` : `'${text}'`;
  return tree.isPlain(node) ? quoted : `the text ${quoted}`;
}

/**
 * Location of a field's value in a mapping; of the mapping when it does not have the field itself.
 */
function locate(tree: YamlTree, mapping: number, field: string | undefined): Location | undefined {
  if (tree.size === 0) return undefined;
  let node = mapping;
  const end = tree.kind(mapping) === yamlKind.mapping ? tree.next(mapping) : 0;
  for (let key = mapping + 1; key < end; ) {
    const value = tree.next(key);
    if (field !== undefined && tree.text(tree.resolve(key)) === field) node = value;
    key = tree.next(value);
  }
  return tree.position(node);
}
