import { compareText } from '@tollgate/kit/text';
import type { Steps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import { type ResourceResult, readResource } from '@tollgate/rules/read-resource';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { findExemptions } from '@tollgate/rules/warnings';
import type { ConfigObject } from '../sources/source.ts';

/** An object in the catalog: the manifest is replaced by its last valid version. */
export interface CatalogObject extends Omit<ConfigObject, 'manifest'> {
  /** The newest version that is valid on its own; undefined when there was none. */
  readonly valid: ValidVersion | undefined;
  /** Problems of the current version, one per line; undefined when it is the valid one. */
  readonly problems: string | undefined;
}

/** A version of an object that the limiter's own loader accepts. */
export interface ValidVersion {
  readonly generation: number;
  readonly document: RuleDocument;
  /** Number of limits. */
  readonly rules: number;
  /** Rules without effect and exemptions, one per line; may be empty. */
  readonly warnings: string;
}

/** Orders by age, oldest first. The order is the same on all replicas. */
export function compareAge(a: CatalogObject, b: CatalogObject): number {
  return a.createdMs - b.createdMs || compareText(a.order, b.order) || compareText(a.id, b.id);
}

/** The id, and the file if there is one. */
export function displayName({ id, label }: Pick<CatalogObject, 'id' | 'label'>): string {
  return label === undefined ? id : `${id} (${label})`;
}

/**
 * Validates an object on its own, with the loader of the limiters: they accept what passes. An
 * invalid version is replaced by `last`, the last valid version of an object with the same uid.
 */
export function* validateObject(
  { manifest, ...identity }: ConfigObject,
  last: ValidVersion | undefined,
): Steps<CatalogObject> {
  const validated = yield* validateSafely(manifest, identity);
  return validated.ok
    ? { ...identity, valid: validated.version, problems: undefined }
    : { ...identity, valid: last, problems: formatProblems(validated.problems) };
}

/** All problems of one object on its own; empty for a valid one. */
export function* findObjectProblems({ manifest, ...identity }: ConfigObject): Steps<readonly RuleProblem[]> {
  const validated = yield* validateSafely(manifest, identity);
  return validated.ok ? [] : validated.problems;
}

type Validated =
  | { readonly ok: true; readonly version: ValidVersion }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

/** A manifest on which the reader or the loader throws must not affect other objects. */
function* validateSafely(manifest: unknown, object: Omit<ConfigObject, 'manifest'>): Steps<Validated> {
  const source = object.label ?? object.id;
  try {
    return yield* validateVersion(readResource(manifest, source), object.generation);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ok: false, problems: [{ source, path: '', message: `cannot be read: ${reason}` }] };
  }
}

function* validateVersion(read: ResourceResult, generation: number): Steps<Validated> {
  if (!read.ok) return read;
  const { document } = read;
  const compiled = yield* compileRules([document], { mergeDomains: false });
  if (!compiled.ok) return compiled;
  const { ruleCount: rules } = compiled.rules;
  const warnings = formatProblems([...compiled.warnings, ...findExemptions(document)]);
  return { ok: true, version: { generation, document, rules, warnings } };
}

/** Problems listed per object. */
const maxLines = 10;

/** Characters: the text is stored in the object, of which etcd keeps many versions. */
const maxLength = 4096;

/** Characters of a line, which may repeat text of the manifest. */
const maxLineLength = 500;

/** One line per problem, `<field>: <message> (<hint>)`, then `and 7 more`. */
function formatProblems(problems: readonly RuleProblem[]): string {
  const lines: string[] = [];
  let length = 0;
  for (const problem of problems) {
    const line = truncate(formatProblem(problem));
    length += line.length + 1;
    if (lines.length === maxLines || length > maxLength) break;
    lines.push(line);
  }
  const left = problems.length - lines.length;
  if (left > 0) lines.push(`and ${left} more`);
  return lines.join('\n');
}

function formatProblem({ field, path, message, hint }: RuleProblem): string {
  const location = field ?? path;
  const text = location === '' ? message : `${location}: ${message}`;
  return hint === undefined ? text : `${text} (${hint})`;
}

const truncate = (line: string): string =>
  line.length <= maxLineLength ? line : `${line.slice(0, maxLineLength)}…`;
