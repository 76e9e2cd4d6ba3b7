import { compileRules } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import { type ResourceResult, readResource } from '@tollgate/rules/read-resource';
import type { Steps } from '@tollgate/rules/steps';
import { findExemptions } from '@tollgate/rules/warnings';
import type { CatalogEntry, GoodVersion } from './catalog-entry.ts';
import type { ConfigObject } from './config-object.ts';
import { problemText } from './problem-text.ts';

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
