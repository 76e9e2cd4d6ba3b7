import type { Steps } from '@tollgate/kit/steps';
import { compareText } from '@tollgate/kit/text';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import { type ResourceResult, readResource } from '@tollgate/rules/read-resource';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { findExemptions } from '@tollgate/rules/warnings';
import type { ConfigObject } from '../sources/source.ts';

/** One object of the catalog, judged on its own. */
export interface CatalogEntry extends Omit<ConfigObject, 'manifest'> {
  /** Its newest version that is valid on its own: what counts of it. Undefined while there was none. */
  readonly good: GoodVersion | undefined;
  /** What is wrong with the present version, line by line; undefined when that is the good one. */
  readonly problems: string | undefined;
}

/** A version of an object that the limiter's own loader takes. */
export interface GoodVersion {
  readonly generation: number;
  readonly document: RuleDocument;
  /** Limits in it. */
  readonly rules: number;
  /** What is accepted and to be checked, line by line: rules without effect, exemptions; empty when there is nothing. */
  readonly warnings: string;
}

/** Orders by age, the oldest first: whoever comes first has what both want. The same for every replica. */
export function compareAge(a: CatalogEntry, b: CatalogEntry): number {
  return a.createdMs - b.createdMs || compareText(a.order, b.order) || compareText(a.id, b.id);
}

/** What people look for: the id, and the file it is in if there is one. */
export function nameOf({ id, label }: Pick<CatalogEntry, 'id' | 'label'>): string {
  return label === undefined ? id : `${id} (${label})`;
}

/** Most problems told of one object: a person corrects a few and tries again. */
const maxLines = 10;

/** Longest text, in characters: it is stored with the object, and etcd keeps many versions of each. */
const maxLength = 4096;

/** Longest line; a message may repeat what the manifest says. */
const maxLineLength = 500;

/**
 * Problems of one object, a line each: `<field>: <message> (<hint>)`. The object itself is not named, for this is read
 * in its own status. What is too much is counted: `and 7 more`.
 */
function problemText(problems: readonly RuleProblem[]): string {
  const lines: string[] = [];
  let length = 0;
  for (const problem of problems) {
    const line = cut(problemLine(problem));
    length += line.length + 1;
    if (lines.length === maxLines || length > maxLength) break;
    lines.push(line);
  }
  const left = problems.length - lines.length;
  if (left > 0) lines.push(`and ${left} more`);
  return lines.join('\n');
}

function problemLine({ field, path, message, hint }: RuleProblem): string {
  const place = field ?? path;
  const text = place === '' ? message : `${place}: ${message}`;
  return hint === undefined ? text : `${text} (${hint})`;
}

const cut = (line: string): string =>
  line.length <= maxLineLength ? line : `${line.slice(0, maxLineLength)}…`;

/**
 * Judges one object on its own, with the loader that limiters use: what is accepted here is refused by none of them.
 * A version that is not valid leaves `last` in its place, the good one of the same life of the object.
 */
export function* acceptObject(
  { manifest, ...identity }: ConfigObject,
  last: GoodVersion | undefined,
): Steps<CatalogEntry> {
  const judged = yield* judgeSafely(manifest, identity);
  return judged.ok
    ? { ...identity, good: judged.good, problems: undefined }
    : { ...identity, good: last, problems: problemText(judged.problems) };
}

/** Everything that is wrong with one object on its own; empty for a valid one. */
export function* problemsOfObject({ manifest, ...identity }: ConfigObject): Steps<readonly RuleProblem[]> {
  const judged = yield* judgeSafely(manifest, identity);
  return judged.ok ? [] : judged.problems;
}

type Judged =
  | { readonly ok: true; readonly good: GoodVersion }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

type Identity = Omit<ConfigObject, 'manifest'>;

/** A manifest that the reader or the loader fails on is the problem of its object, never that of all others. */
function* judgeSafely(manifest: unknown, identity: Identity): Steps<Judged> {
  const source = identity.label ?? identity.id;
  try {
    return yield* judgeVersion(readResource(manifest, source), identity.generation);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ok: false, problems: [{ source, path: '', message: `cannot be read: ${reason}` }] };
  }
}

function* judgeVersion(read: ResourceResult, generation: number): Steps<Judged> {
  if (!read.ok) return read;
  const { document } = read;
  const compiled = yield* compileRules([document], { mergeDomains: false });
  if (!compiled.ok) return compiled;
  const { ruleCount: rules } = compiled.rules;
  const warnings = problemText([...compiled.warnings, ...findExemptions(document)]);
  return { ok: true, good: { generation, document, rules, warnings } };
}
