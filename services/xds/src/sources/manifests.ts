import { isDeepStrictEqual } from 'node:util';
import { meantName } from '@tollgate/kit/spelling';
import type { TextFile } from '@tollgate/kit/text-files';
import type { Steps } from '@tollgate/kit/time';
import { policyGroup, policyKind } from '@tollgate/policies/definition/resource-shape';
import { readResource } from '@tollgate/rules/read-resource';
import { resourceGroup, resourceKind } from '@tollgate/rules/resource-shape';
import { parse, splitDocuments, type YamlDocument, type YamlPart } from '@tollgate/yaml/documents';
import { parseScalar } from '@tollgate/yaml/scalars';
import type { Position } from '@tollgate/yaml/tree';
import type { ConfigObject, SourceProblem } from '../catalog/source.ts';

/** A manifest and its location. */
export interface Manifest {
  readonly content: unknown;
  /** `config/api.yaml#2`: file and number of the document, from 1. */
  readonly label: string;
  /** The label in a form that sorts by number. */
  readonly order: string;
  /** Scalars that kubectl reads differently. */
  readonly ambiguous: readonly SourceProblem[];
}

export type ParsedFile =
  | { readonly ok: true; readonly manifests: readonly Manifest[] }
  | { readonly ok: false; readonly problem: SourceProblem };

/**
 * Values of one document, including those repeated by aliases: a few lines of aliases can expand to
 * more than fits into memory. An object of the API server has at most 1.5 MB, which is far less.
 */
const maxValues = 500_000;

/** The parser's own bound, which aliases evade. */
const maxDepth = 100;

/** Parses a file of YAML or JSON documents; lists (`kind: List`) are expanded. */
export function* parseManifests({ source, text }: TextFile): Steps<ParsedFile> {
  // Many programs truncate a file before they write it; that must not remove its limits.
  if (text.trim() === '') return fail(source, 'is empty: write a manifest, or remove the file');
  const manifests: Manifest[] = [];
  let number = 0;
  for (const part of splitDocuments(text)) {
    const parsed = parse(part);
    if (!parsed.ok) {
      const { reason, position } = parsed.error;
      return fail(position === undefined ? source : formatPosition(source, position), reason);
    }
    for (const document of parsed.documents) {
      const content = document.value;
      // Empty documents are not counted.
      if (content === null || content === undefined) continue;
      number += 1;
      const problem = findDocumentProblem(content);
      if (problem !== undefined) return fail(`${source}#${number}`, problem);
      const ambiguous = mayBeAmbiguous(part) ? findAmbiguousScalars(document) : [];
      manifests.push(...expandList(content, { source, number, ambiguous }));
    }
    yield;
  }
  return { ok: true, manifests };
}

/**
 * A cheap check, because finding scalars parses the text again. Manifests of other kinds are not
 * checked. An ambiguous scalar is a single word of the text, without the punctuation around it.
 */
function mayBeAmbiguous({ text }: YamlPart): boolean {
  if (![...kinds.keys(), ...kinds.values()].some((name) => text.includes(name))) return false;
  for (const [word] of text.matchAll(/[^\s,[\]{}"'#]+/g))
    if (mayDiffer.test(word.replace(/^:|:$/g, ''))) return true;
  return false;
}

function fail(source: string, message: string): ParsedFile & { ok: false } {
  return { ok: false, problem: { source, message } };
}

const formatPosition = (source: string, { line, column }: Position): string => `${source}:${line}:${column}`;

interface DocumentOrigin {
  readonly source: string;
  /** Number of the document in the file, from 1. */
  readonly number: number;
  readonly ambiguous: readonly AmbiguousScalar[];
}

function expandList(content: unknown, { source, number, ambiguous }: DocumentOrigin): Manifest[] {
  const label = `${source}#${number}`;
  const order = `${source}#${pad(number)}`;
  const toProblems = (scalars: readonly AmbiguousScalar[]): readonly SourceProblem[] =>
    scalars.map(({ path, message, ...position }) => ({
      source: formatPosition(source, position),
      message: `${path}: ${message}`,
    }));
  // `kind: List`, or a typed list: `RateLimitConfigList`.
  const isList = isRecord(content) && typeof content.kind === 'string' && content.kind.endsWith('List');
  if (!isList || !Array.isArray(content.items))
    return [{ content, label, order, ambiguous: toProblems(ambiguous) }];
  const items: readonly unknown[] = content.items;
  return items.map((item, index) => ({
    content: item,
    label: `${label}.items[${index}]`,
    order: `${order}.items[${pad(index)}]`,
    ambiguous: toProblems(ambiguous.filter(({ path }) => path.startsWith(`items[${index}]`))),
  }));
}

/** Numbers of equal length sort as text. */
const pad = (number: number): string => String(number).padStart(8, '0');

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Why a document is rejected as a whole. */
function findDocumentProblem(content: unknown): string | undefined {
  let left = maxValues;
  let problem: string | undefined;
  const checkText = (text: string): void => {
    // On the wire unpaired surrogates are all replaced by the same character, and different names
    // would become equal.
    if (!text.isWellFormed()) problem ??= 'contains an unpaired surrogate: correct the \\u escape';
  };
  const visit = (value: unknown, depth: number): void => {
    left -= 1;
    if (left <= 0) problem ??= `has more than ${maxValues} values; split it`;
    if (depth > maxDepth)
      problem ??= `nests deeper than ${maxDepth} levels, or an alias in it leads to itself`;
    if (problem !== undefined) return;
    if (typeof value === 'string') checkText(value);
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      checkText(key);
      visit(inner, depth + 1);
      if (problem !== undefined) return;
    }
  };
  visit(content, 0);
  return problem;
}

/** A scalar that YAML 1.2, used here, and YAML 1.1, used by kubectl, read as different values. */
export interface AmbiguousScalar extends Position {
  /** JSON path in the document. */
  readonly path: string;
  /** Problem and remedy. */
  readonly message: string;
}

/** Reported per document. */
const maxAmbiguous = 100;

/** Finds scalars that kubectl reads differently: `0100` is 100 in a folder, 64 in a cluster. */
export function findAmbiguousScalars(document: YamlDocument): readonly AmbiguousScalar[] {
  const found: AmbiguousScalar[] = [];
  document.visitPlainScalars((text, locate) => {
    const message = found.length === maxAmbiguous ? undefined : describeAmbiguity(text);
    if (message === undefined) return;
    const { path, position } = locate();
    found.push({ ...position, path, message });
  });
  return found;
}

/** Words that may be a number or a boolean in one version only; few words of a manifest are. */
const mayDiffer = /^(?:y|yes|n|no|on|off)$|^(?!(?:-?[1-9][0-9]{0,14}|0|-{1,3})$)[-+.0-9]/i;

function describeAmbiguity(text: string): string | undefined {
  // Both read scalars with white space as text.
  if (!mayDiffer.test(text) || /\s/.test(text)) return undefined;
  const here = parseYaml12(text);
  const there = parseScalar(text);
  if (Object.is(here, there) || here === there) return undefined;
  const advice =
    typeof here === 'string' ? `put it in quotes, or write ${String(there)}` : `write ${String(here)}`;
  const describe = (value: unknown): string => (typeof value === 'string' ? 'text' : String(value));
  return `${text} is ${describe(here)} here and ${describe(there)} for kubectl: ${advice}`;
}

/** Parsed as a list item, so that no text is taken for a document marker. */
function parseYaml12(text: string): unknown {
  const parsed = parse({ text: `- ${text}`, linesBefore: 0 });
  const items = parsed.ok ? parsed.documents[0]?.value : undefined;
  return Array.isArray(items) ? items[0] : items;
}

/** Kinds that are read, by their groups. */
const kinds: ReadonlyMap<string, string> = new Map([
  [resourceGroup, resourceKind],
  [policyGroup, policyKind],
]);

/** An object without its generation, which depends on earlier reads. */
export type ManifestObject = Omit<ConfigObject, 'generation'> & { readonly label: string };

export const isPolicy = ({ id }: Pick<ConfigObject, 'id'>): boolean => id.startsWith(policyPrefix);

/** Objects of both kinds may have the same name. */
const policyPrefix = `${policyKind}/`;

export type ReadManifest =
  | { readonly type: 'object'; readonly object: ManifestObject }
  /** Another kind in the same folder, such as a Deployment. */
  | { readonly type: 'other'; readonly kind: string }
  | {
      readonly type: 'problem';
      readonly problem: SourceProblem;
      /** The intended object, if it can be identified. */
      readonly id?: string;
    };

/** kubectl has the same default. */
const defaultNamespace = 'default';

/** Names of objects and of namespaces, as in the API server. */
const objectNames = { pattern: /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, maxLength: 253 };
const namespaceNames = { pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, maxLength: 63 };

/** Reads the identity of an object from its manifest. Its spec is validated later. */
export function readManifest({ content, label, order }: Manifest): ReadManifest {
  if (!isRecord(content)) return explainInvalid(content, label);
  const { kind, apiVersion, metadata } = content;
  const { name, namespace = defaultNamespace } = isRecord(metadata) ? metadata : {};
  // The group tells a policy whose kind is misspelled.
  const meansPolicy = kind === policyKind || String(apiVersion).startsWith(`${policyGroup}/`);
  const id = `${meansPolicy ? policyPrefix : ''}${namespace}/${name}`;
  if (typeof kind !== 'string') return { ...explainInvalid(content, label), id };
  if (![...kinds.values()].includes(kind)) {
    // Each group has only one kind: another one is misspelled.
    const [group = '', meant] = [...kinds].find(([own]) => String(apiVersion).startsWith(`${own}/`)) ?? [];
    if (meant !== undefined)
      return { ...toProblem(label, `kind: ${group} has no ${quote(kind)} (did you mean ${meant}?)`), id };
    const similar = findSimilar(kind, apiVersion);
    if (similar === undefined) return { type: 'other', kind };
    const message = `kind: ${quote(kind)} of ${quote(apiVersion)} is not read (did you mean ${similar.kind} of ${similar.group}?)`;
    const prefix = similar.kind === policyKind ? policyPrefix : '';
    return { ...toProblem(label, message), id: `${prefix}${namespace}/${name}` };
  }
  if (!isName(name, objectNames)) return toProblem(label, describeName('name', name));
  if (!isName(namespace, namespaceNames)) return toProblem(label, describeName('namespace', namespace));
  return {
    type: 'object',
    object: { id, namespace, name, uid: id, createdMs: 0, order, label, manifest: content },
  };
}

/** The kind that is meant by a manifest whose group and kind are both misspelled. */
function findSimilar(kind: string, apiVersion: unknown): { group: string; kind: string } | undefined {
  const [group = ''] = String(apiVersion).split('/');
  const meantKind = meantName(kind, [...kinds.values()]);
  const meantGroup = meantName(group, [...kinds.keys()]);
  const found = [...kinds].find(([own, ofGroup]) => ofGroup === meantKind || own === meantGroup);
  return found && { group: found[0], kind: found[1] };
}

/**
 * Finds the object whose name and spec a manifest of another kind has, and which is therefore meant
 * by it, however its group and kind are written.
 */
export function findRenamed(
  { content }: Manifest,
  objects: readonly ManifestObject[],
): ManifestObject | undefined {
  if (!isRecord(content) || !isRecord(content.spec) || Object.keys(content.spec).length === 0)
    return undefined;
  const { spec } = content;
  const { name, namespace = defaultNamespace } = isRecord(content.metadata) ? content.metadata : {};
  return objects.find(
    (object) =>
      object.name === name &&
      object.namespace === namespace &&
      isDeepStrictEqual(Reflect.get(Object(object.manifest), 'spec'), spec),
  );
}

type ManifestProblem = ReadManifest & { readonly type: 'problem' };

/** The reader of resources recognizes common mistakes. */
function explainInvalid(content: unknown, label: string): ManifestProblem {
  const read = readResource(content, label);
  const first = read.ok ? undefined : read.problems[0];
  const hint = first?.hint === undefined ? '' : ` (${first.hint})`;
  return toProblem(label, first === undefined ? 'has no kind' : `${first.message}${hint}`);
}

function toProblem(source: string, message: string): ManifestProblem {
  return { type: 'problem', problem: { source, message } };
}

function describeName(field: 'name' | 'namespace', value: unknown): string {
  if (value === undefined || value === null) return `metadata.${field}: is required`;
  return `metadata.${field}: must be lower case letters, digits and '-', not ${quote(value)}`;
}

/** Characters of a value in a message. */
const maxQuoted = 80;

function quote(value: unknown): string {
  return typeof value === 'string' ? `'${value.slice(0, maxQuoted)}'` : 'a value that is not text';
}

const isName = (value: unknown, { pattern, maxLength }: typeof objectNames): value is string =>
  typeof value === 'string' && value.length <= maxLength && pattern.test(value);
