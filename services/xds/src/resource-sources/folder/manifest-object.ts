import { readResource } from '@tollgate/rules/read-resource';
import { resourceGroup, resourceKind } from '@tollgate/rules/resource-shape';
import type { ConfigObject, SourceProblem } from '../../domain/config-object.ts';
import { isRecord, type Manifest } from './parse-manifests.ts';

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
