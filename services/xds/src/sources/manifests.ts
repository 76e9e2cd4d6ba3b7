import type { Steps } from '@tollgate/kit/steps';
import type { TextFile } from '@tollgate/kit/text-files';
import { readResource } from '@tollgate/rules/read-resource';
import { resourceGroup, resourceKind } from '@tollgate/rules/resource-shape';
import { parse, splitDocuments, type YamlPart } from '@tollgate/yaml/documents';
import type { YamlError } from '@tollgate/yaml/position';
import type { ConfigObject, SourceProblem } from './source.ts';
import { type AmbiguousScalar, findAmbiguousScalars } from './yaml.ts';

/** A manifest, and where it is. */
export interface Manifest {
  readonly content: unknown;
  /** `config/api.yaml#2`: file and number of the document in it, from 1. */
  readonly label: string;
  /** The label in a form that sorts by the number. */
  readonly order: string;
  /** Scalars of it that kubectl would take for something else; looked for in manifests of our own only. */
  readonly ambiguous: readonly SourceProblem[];
}

/** The manifests of a file, or why it has none. */
export type ParsedFile =
  | { readonly ok: true; readonly manifests: readonly Manifest[] }
  | { readonly ok: false; readonly problem: SourceProblem };

/**
 * Most values in one document, what aliases repeat included: a few lines of aliases can stand for more than fits into
 * memory. An object that the API server stores has 1.5 MB at most, which is far less.
 */
const maxValues = 500_000;

/** Deepest nesting: the parser's own bound for what is written out, which aliases get around. */
const maxDepth = 100;

/** Parses a file of YAML or JSON with any number of documents; lists of manifests (`kind: List`) are taken apart. */
export function* parseManifests({ source, text }: TextFile): Steps<ParsedFile> {
  // Many programs that save a file cut it to nothing first; that must not lift its limits.
  if (text.trim() === '') return failed(source, 'is empty: write a manifest, or remove the file');
  const manifests: Manifest[] = [];
  let number = 0;
  for (const part of splitDocuments(text)) {
    const parsed = parse(part);
    if (!parsed.ok) return unparsable(source, parsed.error);
    for (const document of parsed.documents) {
      const content = document.value;
      // What is empty or has nothing but comments is no document to a person who counts.
      if (content === null || content === undefined) continue;
      number += 1;
      const objection = objectionTo(content);
      if (objection !== undefined) return failed(`${source}#${number}`, objection);
      const ambiguous = mentionsOurs(part) ? findAmbiguousScalars(document) : [];
      manifests.push(...takeApart(content, { source, number, ambiguous }));
    }
    yield;
  }
  return { ok: true, manifests };
}

/** Cheap: a folder may hold thousands of manifests that are none of ours, which may say what they like. */
const mentionsOurs = ({ text }: YamlPart): boolean =>
  text.includes(resourceKind) || text.includes(resourceGroup);

function unparsable(source: string, { reason, position }: YamlError) {
  return failed(position === undefined ? source : `${source}:${position.line}:${position.column}`, reason);
}

const failed = (
  source: string,
  message: string,
): { readonly ok: false; readonly problem: SourceProblem } => ({
  ok: false,
  problem: { source, message },
});

interface DocumentOrigin {
  readonly source: string;
  /** Number of the document in the file, from 1. */
  readonly number: number;
  readonly ambiguous: readonly AmbiguousScalar[];
}

function takeApart(content: unknown, { source, number, ambiguous }: DocumentOrigin): Manifest[] {
  const label = `${source}#${number}`;
  const order = `${source}#${padded(number)}`;
  if (!isRecord(content) || !isListKind(content.kind) || !Array.isArray(content.items))
    return [{ content, label, order, ambiguous: problemsOf(ambiguous, source) }];
  const items: readonly unknown[] = content.items;
  return items.map((item, index) => ({
    content: item,
    label: `${label}.items[${index}]`,
    order: `${order}.items[${padded(index)}]`,
    ambiguous: problemsOf(
      ambiguous.filter(({ path }) => path.startsWith(`items[${index}]`)),
      source,
    ),
  }));
}

function problemsOf(ambiguous: readonly AmbiguousScalar[], source: string): readonly SourceProblem[] {
  return ambiguous.map(({ line, column, path, message }) => ({
    source: `${source}:${line}:${column}`,
    message: `${path}: ${message}`,
  }));
}

/** Lists are `kind: List`, or that of what is in them: `RateLimitConfigList`. */
const isListKind = (kind: unknown): boolean => typeof kind === 'string' && kind.endsWith('List');

/** As text, numbers of the same length sort as numbers do. */
const padded = (number: number): string => String(number).padStart(8, '0');

/** Is this a mapping? */
function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Why a document cannot be taken at all; undefined when it can. */
function objectionTo(content: unknown): string | undefined {
  let left = maxValues;
  let objection: string | undefined;
  const checkText = (text: string): void => {
    if (!text.isWellFormed()) objection ??= notUnicode;
  };
  const visit = (value: unknown, depth: number): void => {
    left -= 1;
    if (left <= 0) objection ??= `has more than ${maxValues} values; split it`;
    if (depth > maxDepth)
      objection ??= `nests deeper than ${maxDepth} levels, or an alias in it leads to itself`;
    if (objection !== undefined) return;
    if (typeof value === 'string') checkText(value);
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      checkText(key);
      visit(inner, depth + 1);
      if (objection !== undefined) return;
    }
  };
  visit(content, 0);
  return objection;
}

/** On the wire such characters become one and the same, and so would different names. */
const notUnicode = 'has half a surrogate pair, which is no character: correct the \\u escape';

/** A manifest that stands for an object; its generation is known only to whoever knows the one before. */
export type ManifestObject = Omit<ConfigObject, 'generation'> & { readonly label: string };

/** What a manifest is. */
export type ReadManifest =
  | { readonly type: 'object'; readonly object: ManifestObject }
  /** Something else that people keep in the same folder: a Deployment. */
  | { readonly type: 'other'; readonly kind: string }
  | {
      readonly type: 'problem';
      readonly problem: SourceProblem;
      /** The object that it was meant to be, if that can be told. */
      readonly id?: string;
    };

type ManifestProblem = ReadManifest & { readonly type: 'problem' };

/** Where an object is that says nothing of it, as kubectl has it. */
const defaultNamespace = 'default';

/** Names of objects and of namespaces, as the API server takes them. */
const names = { pattern: /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, maxLength: 253 };
const namespaces = { pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, maxLength: 63 };

/** Takes the identity of an object from its manifest. What its spec says is not judged here. */
export function readManifest({ content, label, order }: Manifest): ReadManifest {
  if (!isRecord(content)) return noManifest(content, label);
  const { kind, metadata } = content;
  const { name, namespace = defaultNamespace } = isRecord(metadata) ? metadata : {};
  const id = `${namespace}/${name}`;
  if (typeof kind !== 'string') return { ...noManifest(content, label), id };
  if (kind !== resourceKind)
    return isOurs(content) ? { ...problem(label, kindProblem(kind)), id } : { type: 'other', kind };
  if (!isName(name, names)) return problem(label, nameProblem('name', name));
  if (!isName(namespace, namespaces)) return problem(label, nameProblem('namespace', namespace));
  return {
    type: 'object',
    object: { id, namespace, name, uid: id, createdMs: 0, order, label, manifest: content },
  };
}

/** The reader of manifests knows what people mistake for one. */
function noManifest(content: unknown, label: string): ManifestProblem {
  const read = readResource(content, label);
  const first = read.ok ? undefined : read.problems[0];
  const hint = first?.hint === undefined ? '' : ` (${first.hint})`;
  return problem(label, first === undefined ? 'has no kind' : `${first.message}${hint}`);
}

/** Nobody else has kinds in our group: it is a misspelled one, not another. */
const isOurs = ({ apiVersion }: Readonly<Record<string, unknown>>): boolean =>
  typeof apiVersion === 'string' && apiVersion.startsWith(`${resourceGroup}/`);

const kindProblem = (kind: string): string =>
  `kind: ${resourceGroup} has no ${shown(kind)} (did you mean ${resourceKind}?)`;

function nameProblem(field: 'name' | 'namespace', value: unknown): string {
  if (value === undefined || value === null) return `metadata.${field}: is required`;
  return `metadata.${field}: must be lower case letters, digits and '-', not ${shown(value)}`;
}

/** Longest text repeated in a message. */
const maxShown = 80;

function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value.slice(0, maxShown)}'` : `a value that is no text`;
}

const isName = (value: unknown, { pattern, maxLength }: typeof names): value is string =>
  typeof value === 'string' && value.length <= maxLength && pattern.test(value);

const problem = (source: string, message: string): ManifestProblem => ({
  type: 'problem',
  problem: { source, message },
});
