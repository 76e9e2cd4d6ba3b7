import { isMapping } from '@tollgate/rules/resource-fields';
import { resourceKind } from '@tollgate/rules/resource-shape';
import { parse, splitDocuments, type YamlDocument } from '@tollgate/yaml/documents';
import { policyKind } from '../definition/resource-shape.ts';
import type { Finding } from './finding.ts';

/** A file, or another text. */
export interface Source {
  /** As it is shown, relative to the working directory. */
  readonly path: string;
  readonly text: string;
  /** Whether it was named, and not found in a folder, where files of other kinds are ignored. */
  readonly isNamed: boolean;
}

/** The kind of a document, by its content. */
export type Kind = keyof typeof kindNames;

/** Nouns for one and for several. */
export const kindNames = {
  policy: ['AccessPolicy', 'AccessPolicies'],
  config: ['RateLimitConfig', 'RateLimitConfigs'],
  rules: ['file of limiter rules', 'files of limiter rules'],
  routes: ['routes file', 'routes files'],
  tests: ['file of tests', 'files of tests'],
} as const;

/** Kinds of objects, by the kind of their document. */
export const objectKinds = { policy: policyKind, config: resourceKind } as const;

export interface PolicyDocument {
  readonly source: Source;
  readonly kind: Kind;
  readonly value: unknown;
  /** Where a field is, or its nearest ancestor. */
  positionOf(field: string): { readonly line: number; readonly column: number };
}

/** Files with content that identifies them; manifests have a `kind`. */
const fieldsOfKinds: readonly (readonly [Kind, readonly string[]])[] = [
  ['tests', ['tests']],
  ['rules', ['domain', 'descriptors']],
  ['routes', ['routes', 'default', 'limit_domain', 'claims', 'issuers']],
];

/** The documents of a file, and what is wrong with its form. */
export function readDocuments(source: Source): {
  readonly documents: readonly PolicyDocument[];
  readonly findings: readonly Finding[];
} {
  const documents: PolicyDocument[] = [];
  const findings: Finding[] = [];
  const report = (message: string, position?: { readonly line: number; readonly column: number }) =>
    void findings.push({ severity: 'problem', file: source.path, ...position, message });
  for (const part of splitDocuments(source.text)) {
    const parsed = parse(part);
    if (!parsed.ok) report(parsed.error.reason, parsed.error.position);
    else
      for (const document of parsed.documents)
        for (const found of expandLists(source, document)) {
          if (found.kind !== undefined) documents.push({ ...found, kind: found.kind });
          else if (source.isNamed) report(describeUnknown(found.value), found.positionOf(''));
        }
  }
  if (source.isNamed && documents.length + findings.length === 0) report('the file is empty');
  return { documents, findings };
}

type Candidate = Omit<PolicyDocument, 'kind'> & { readonly kind: Kind | undefined };

/** `kubectl get -o yaml` prints a list of objects. */
function expandLists(source: Source, document: YamlDocument): readonly Candidate[] {
  const { value } = document;
  if (value === null || value === undefined) return [];
  const toCandidate = (item: unknown, prefix: string): Candidate => ({
    ...{ source, value: item, kind: findKind(item) },
    positionOf: (field) =>
      document.positionOf(prefix !== '' && field !== '' ? `${prefix}.${field}` : `${prefix}${field}`),
  });
  const items: unknown = isMapping(value) && /List$/.test(String(value.kind)) ? value.items : undefined;
  return Array.isArray(items)
    ? items.map((item: unknown, index) => toCandidate(item, `items[${index}]`))
    : [toCandidate(value, '')];
}

function findKind(value: unknown): Kind | undefined {
  if (!isMapping(value)) return undefined;
  for (const kind of ['policy', 'config'] as const) if (value.kind === objectKinds[kind]) return kind;
  if (value.kind !== undefined) return undefined;
  return fieldsOfKinds.find(([, fields]) => fields.some((field) => field in value))?.[0];
}

function describeUnknown(value: unknown): string {
  const found =
    isMapping(value) && value.kind !== undefined ? `a manifest of the kind ${String(value.kind)}` : 'unknown';
  return (
    `the content is ${found}: expected an ${policyKind}, a ${resourceKind}, rules of the limiter (domain, ` +
    'descriptors), a routes file (routes) or tests of policies (tests)'
  );
}
