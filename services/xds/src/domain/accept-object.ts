import { compileRules } from '@tollgate/rules/compile';
import { type ResourceResult, readResource } from '@tollgate/rules/read-resource';
import type { Steps } from '@tollgate/rules/steps';
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
  const read = readSafely(manifest, identity.label ?? identity.id);
  if (!read.ok) return { ...identity, good: last, problems: problemText(read.problems) };
  const { document } = read;
  const compiled = yield* compileRules([document], { mergeDomains: false });
  if (!compiled.ok) return { ...identity, good: last, problems: problemText(compiled.problems) };
  const good: GoodVersion = {
    generation: identity.generation,
    document,
    rules: compiled.rules.ruleCount,
    warnings: problemText(compiled.warnings),
  };
  return { ...identity, good, problems: undefined };
}

/** A manifest that the reader fails on is the problem of its object, never that of all others. */
function readSafely(manifest: unknown, source: string): ResourceResult {
  try {
    return readResource(manifest, source);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ok: false, problems: [{ source, path: '', message: `cannot be read: ${reason}` }] };
  }
}
