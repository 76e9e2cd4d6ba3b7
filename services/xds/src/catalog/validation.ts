import { getErrorMessage } from '@tollgate/kit/errors';
import { compareText } from '@tollgate/kit/text';
import type { Steps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import { type ResourceResult, readResource } from '@tollgate/rules/read-resource';
import { type DescriptorSpec, getTrialDocument, type RuleDocument } from '@tollgate/rules/rule-document';
import type { ConfigObject } from './source.ts';
import { isNewer, type StoredVersion } from './stored-version.ts';

/** An object in the catalog: the manifest is replaced by its last valid version. */
export interface CatalogObject extends Omit<ConfigObject, 'manifest' | 'stored'> {
  /** The newest version that is valid on its own; undefined when there was none. */
  readonly valid: ValidVersion | undefined;
  /** Problems of the current version, one per line; undefined when it is the valid one. */
  readonly problems: string | undefined;
  /** Why the rules stay in force although the object was deleted; absent for one that exists. */
  readonly heldBack?: string;
  readonly claim: DomainClaim;
}

/**
 * Whether the domain belongs to the namespace of the object. `tolerated`: it does not, but the
 * object was in force before the rule existed, and limits must not vanish with an upgrade.
 */
export type DomainClaim = 'allowed' | 'tolerated' | 'refused';

/** A version of an object that the limiter's own loader accepts. */
export interface ValidVersion {
  readonly generation: number;
  /** The spec of the manifest. */
  readonly spec: unknown;
  readonly document: RuleDocument;
  /** `spec.trial`: the rules refuse nothing. */
  readonly isOnTrial: boolean;
  /** Number of limits. */
  readonly rules: number;
  /** Rules without effect and exemptions, one per line; may be empty. */
  readonly warnings: string;
}

/** Orders by age, oldest first. The order is the same on all replicas. */
export function compareAge(a: CatalogObject, b: CatalogObject): number {
  return a.createdMs - b.createdMs || compareText(a.order, b.order) || compareText(a.id, b.id);
}

/**
 * Validates an object on its own, with the loader of the limiters: they accept what passes. An
 * invalid version is replaced by the newest valid one of an object with the same uid: `last`, or
 * that which was stored before a restart, if the loader accepts it still.
 */
export function* validateObject(
  { manifest, stored, ...identity }: ConfigObject,
  last: ValidVersion | undefined,
): Steps<Omit<CatalogObject, 'claim'>> {
  const validated = yield* validateAlone(manifest, identity);
  if (validated.ok) return { ...identity, valid: validated.version, problems: undefined };
  if (stored === undefined || !isNewer(stored, last))
    return { ...identity, valid: last, problems: formatProblems(validated.problems) };
  const restored = yield* validateStored(manifest, stored, identity);
  if (restored.ok)
    return { ...identity, valid: restored.version, problems: formatProblems(validated.problems) };
  const refused = `the last valid version, ${describeGeneration(stored)}, is refused now, too:`;
  return {
    ...identity,
    valid: last,
    problems: [formatProblems(validated.problems), refused, formatProblems(restored.problems)].join('\n'),
  };
}

/** A newer loader may refuse what an older one accepted. */
function* validateStored(
  manifest: unknown,
  stored: StoredVersion,
  identity: Omit<ConfigObject, 'manifest' | 'stored'>,
): Steps<Validated> {
  let spec: unknown;
  try {
    spec = stored.readSpec();
  } catch (error) {
    const message = `the stored copy is damaged: ${getErrorMessage(error)}`;
    return { ok: false, problems: [{ source: identity.id, path: '', message }] };
  }
  const version = { ...(typeof manifest === 'object' ? manifest : undefined), spec };
  return yield* validateAlone(version, { ...identity, generation: stored.generation });
}

/** All problems of one object on its own; empty for a valid one. */
export function* findObjectProblems({ manifest, ...identity }: ConfigObject): Steps<readonly RuleProblem[]> {
  const validated = yield* validateAlone(manifest, identity);
  return validated.ok ? [] : validated.problems;
}

type Validated =
  | { readonly ok: true; readonly version: ValidVersion }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

/**
 * Validates a manifest without the other objects. One on which the reader or the loader throws must
 * not affect them.
 */
export function* validateAlone(manifest: unknown, object: Omit<ConfigObject, 'manifest'>): Steps<Validated> {
  const source = object.label ?? object.id;
  try {
    const read = readResource(manifest, source);
    return yield* validateVersion(read, { generation: object.generation, spec: getField(manifest, 'spec') });
  } catch (error) {
    const reason = getErrorMessage(error);
    return { ok: false, problems: [{ source, path: '', message: `cannot be read: ${reason}` }] };
  }
}

function* validateVersion(
  read: ResourceResult,
  current: Pick<ValidVersion, 'generation' | 'spec'>,
): Steps<Validated> {
  if (!read.ok) return read;
  const trial = getTrialDocument(read.document);
  const document = trial ?? read.document;
  const compiled = yield* compileRules([document], { mergeDomains: false });
  if (!compiled.ok) return compiled;
  const { ruleCount: rules } = compiled.rules;
  const warnings = formatProblems([...compiled.warnings, ...findExemptions(document)]);
  return {
    ok: true,
    version: { ...current, document, isOnTrial: trial !== undefined, rules, warnings },
  };
}

function getField(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** Maximum number of reported exemptions. */
const maxExemptions = 100;

/**
 * Descriptors without a limit and without descriptors below them: requests that they match are not
 * limited. Intended, or a `rateLimit` is missing.
 */
function findExemptions({ source, descriptors, locate }: RuleDocument): readonly RuleProblem[] {
  const found: RuleProblem[] = [];
  const visit = (specs: readonly DescriptorSpec[]): void => {
    for (const { key, at, rateLimit, descriptors: below = [] } of specs) {
      if (found.length === maxExemptions) return;
      if (below.length > 0) visit(below);
      else if (rateLimit === undefined) {
        const location = at === undefined ? undefined : locate?.(at);
        found.push({
          source,
          path: key,
          ...location,
          message: 'has neither rateLimit nor descriptors: requests that it matches are not limited',
        });
      }
    }
  };
  visit(descriptors);
  return found;
}

/** Problems listed per object. */
const maxLines = 10;

/** Characters: the text is stored in the object, of which etcd keeps many versions. */
const maxLength = 4096;

/** Characters of a line, which may repeat text of the manifest. */
const maxLineLength = 500;

/** One line per problem, `<field>: <message> (<hint>)`, then `and 7 more`. */
export function formatProblems(problems: readonly RuleProblem[]): string {
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

export function formatProblem({ source, field, path, message, hint }: RuleProblem): string {
  const location = field ?? path;
  const text = location === '' ? message : `${location}: ${message}`;
  // Another location in the same object needs no name of it.
  return hint === undefined ? text : `${text} (${hint.replace(`${source}: `, '')})`;
}

const truncate = (line: string): string =>
  line.length <= maxLineLength ? line : `${line.slice(0, maxLineLength)}…`;

export function describeGeneration({ generation }: Pick<ValidVersion, 'generation'>): string {
  return generation === 0 ? 'the version before the restart' : `generation ${generation}`;
}
