import { getErrorMessage } from '@tollgate/kit/errors';
import { compareText } from '@tollgate/kit/text';
import type { Steps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import { type ResourceResult, readResource } from '@tollgate/rules/read-resource';
import { type DescriptorSpec, getTrialDocument, type RuleDocument } from '@tollgate/rules/rule-document';
import type { DuplicateRule, MergeResult } from './merge.ts';
import type { ConfigObject } from './source.ts';
import type { StoredVersion } from './stored-version.ts';

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

/** The id, and the file if there is one. */
function displayName({ id, label, heldBack }: CatalogObject): string {
  const name = label === undefined ? id : `${id} (${label})`;
  return heldBack === undefined ? name : `${name}, whose deletion is held back`;
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

/** Versions from before a restart are older than any other. */
export function isNewer(stored: StoredVersion, last: ValidVersion | undefined): boolean {
  return last === undefined || stored.generation > last.generation;
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

export function formatProblem({ source, field, path, message, hint }: RuleProblem): string {
  const location = field ?? path;
  const text = location === '' ? message : `${location}: ${message}`;
  // Another location in the same object needs no name of it.
  return hint === undefined ? text : `${text} (${hint.replace(`${source}: `, '')})`;
}

const truncate = (line: string): string =>
  line.length <= maxLineLength ? line : `${line.slice(0, maxLineLength)}…`;

export const acceptedReasons = [
  'Accepted',
  'OnTrial',
  'Invalid',
  'DuplicateKey',
  'DomainConflict',
  'Held',
  'DomainNotAllowed',
] as const;

type AcceptedReason = (typeof acceptedReasons)[number];

/** A metav1.Condition without its times, which the writer adds. */
export interface Condition {
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase, from a fixed set. */
  readonly reason: string;
  readonly message: string;
}

/** The result of validating an object, on its own and against the other objects of its domain. */
export interface ValidationResult {
  readonly id: string;
  readonly uid: string;
  /** The validated generation. */
  readonly generation: number;
  /** Name of the object in messages. */
  readonly label: string;
  /** Undefined when no version of the object was valid. */
  readonly domain: string | undefined;
  /** Class of the limiters that it is for; absent for all. */
  readonly limiterClass?: string | undefined;
  /** The generation whose rules are in force, or on trial; undefined when there is none. */
  readonly inForce: number | undefined;
  /** Limits of the object in force, or on trial. */
  readonly rules: number;
  /** The newest valid version, to be stored; undefined when there is none. */
  readonly lastValid?: Pick<ValidVersion, 'generation' | 'spec'> | undefined;
  /** Namespace that the domain belongs to or is reserved for, if it is another one. */
  readonly domainOwner: string | undefined;
  readonly accepted: Condition & { readonly reason: AcceptedReason };
}

/**
 * `alone`: the object is the only one of its domain, or the only one on trial. `merge` is undefined
 * if it is invalid.
 */
export function toValidationResult(
  object: CatalogObject,
  merge: MergeResult | undefined,
  alone: boolean,
): ValidationResult {
  const { id, uid, generation, label = id, valid } = object;
  const rules = merge?.type === 'merged' ? merge.rules : 0;
  const isInForce = merge?.type === 'merged' && !(merge.duplicates.length > 0 && rules === 0);
  return {
    id,
    uid,
    generation,
    label,
    domain: valid?.document.domain,
    ...(valid?.document.limiterClass !== undefined && { limiterClass: valid.document.limiterClass }),
    inForce: isInForce ? valid?.generation : undefined,
    rules,
    ...(valid && { lastValid: { generation: valid.generation, spec: valid.spec } }),
    domainOwner: getDomainOwner(merge),
    accepted: toAccepted(object, merge, alone),
  };
}

function getDomainOwner(merge: MergeResult | undefined): string | undefined {
  if (merge?.type === 'conflict') return merge.winner.namespace;
  return merge?.type === 'reserved' ? merge.namespace : undefined;
}

type Accepted = ValidationResult['accepted'];

function toAccepted(object: CatalogObject, merge: MergeResult | undefined, alone: boolean): Accepted {
  const { valid, problems } = object;
  if (valid === undefined || merge === undefined)
    return notAccepted('Invalid', `not valid, and nothing of this object is in force:\n${problems ?? ''}`);
  if (object.heldBack !== undefined)
    return notAccepted('Held', `deleted, but ${describeInForce(valid, merge)}: ${object.heldBack}`);
  if (problems !== undefined)
    return notAccepted('Invalid', `not valid; ${describeInForce(valid, merge)}:\n${problems}`);
  if (merge.type === 'conflict')
    return notAccepted('DomainConflict', describeConflict(object, valid, merge.winner));
  if (merge.type === 'reserved') return notAccepted('DomainConflict', describeReservation(valid, merge));
  if (merge.type === 'refused')
    return notAccepted(
      'DomainNotAllowed',
      `${describeRefusal(object, valid)}; nothing of this object is in force: ${describeAllowed(object)}`,
    );
  if (merge.duplicates.length > 0)
    return notAccepted('DuplicateKey', describeDuplicates(object, valid, merge));
  const reason = valid.isOnTrial ? 'OnTrial' : 'Accepted';
  const limits = describeLimits(valid, alone);
  if (object.claim !== 'tolerated') return { status: 'True', reason, message: limits };
  const tolerated = `${describeRefusal(object, valid)}, and stays in force because it was before`;
  return {
    status: 'True',
    reason,
    message: `${limits}\n${tolerated}: list the namespace in XDS_ANY_DOMAIN_NAMESPACES`,
  };
}

function notAccepted(reason: AcceptedReason, message: string): Accepted {
  return { status: 'False', reason, message };
}

/**
 * Describes the part of the last valid version that is in force while the current one is invalid.
 */
function describeInForce(version: ValidVersion, merge: MergeResult): string {
  const { document } = version;
  if (merge.type === 'conflict')
    return `nothing of this object is in force, because domain '${document.domain}' belongs to namespace '${merge.winner.namespace}'`;
  if (merge.type === 'reserved')
    return `nothing of this object is in force, because domain '${document.domain}' is kept for namespace '${merge.namespace}'`;
  if (merge.type === 'refused')
    return `nothing of this object is in force, because domain '${document.domain}' does not belong to its namespace`;
  const stays = `${describeGeneration(version)} stays ${describeState(version)}`;
  if (merge.duplicates.length === 0) return stays;
  return `${stays} but for what ${listOlder(merge.duplicates)} has too`;
}

function describeGeneration({ generation }: Pick<ValidVersion, 'generation'>): string {
  return generation === 0 ? 'the version before the restart' : `generation ${generation}`;
}

const describeState = ({ isOnTrial }: ValidVersion): string => (isOnTrial ? 'on trial' : 'in force');

function describeConflict(object: CatalogObject, { document }: ValidVersion, winner: CatalogObject): string {
  return (
    `domain '${document.domain}' belongs to namespace '${winner.namespace}', whose object ${displayName(winner)} ${describePrecedence(winner, object)}; ` +
    'nothing of this object is in force: choose another domain'
  );
}

const describeRefusal = ({ namespace }: CatalogObject, { document }: ValidVersion): string =>
  `domain '${document.domain}' does not belong to namespace '${namespace}'`;

const describeAllowed = ({ namespace }: CatalogObject): string =>
  `use '${namespace}' or '${namespace}/<name>'`;

function describeReservation(
  { document }: ValidVersion,
  { namespace, untilMs }: MergeResult & { type: 'reserved' },
): string {
  const until = new Date(untilMs).toISOString();
  return (
    `domain '${document.domain}' belonged to namespace '${namespace}', and is kept for it until ${until}; ` +
    'nothing of this object is in force: choose another domain, or wait'
  );
}

/** Duplicates listed per object. */
const maxDuplicates = 10;

/** Characters of a rule in a message. */
const maxComposite = 200;

function describeDuplicates(
  object: CatalogObject,
  valid: ValidVersion,
  { duplicates, rules }: MergeResult & { type: 'merged' },
): string {
  const lines = duplicates
    .slice(0, maxDuplicates)
    .map(
      ({ composite, older }) =>
        `'${composite.slice(0, maxComposite)}' is already in ${displayName(older)}, which ${describePrecedence(older, object)}`,
    );
  const left = duplicates.length - lines.length;
  if (left > 0) lines.push(`and ${left} more`);
  const others = rules === 1 ? 'limit is' : `${rules} limits are`;
  const rest =
    rules === 0
      ? `nothing of this object is ${describeState(valid)}`
      : `the other ${others} ${describeState(valid)}`;
  return `top-level rules that another object of the namespace has for this domain are left out; ${rest}:\n${lines.join('\n')}`;
}

/** Files are ordered by path, not by age, and an owner keeps its domain with a younger object. */
function describePrecedence(first: CatalogObject, second: CatalogObject): string {
  if (first.claim === 'allowed' && second.claim === 'tolerated') return 'is in the namespace of that name';
  if (compareAge(first, second) > 0) return 'has had it before';
  return first.createdMs < second.createdMs ? 'is older' : 'comes first';
}

function listOlder(duplicates: readonly DuplicateRule[]): string {
  const names = [...new Set(duplicates.map(({ older }) => displayName(older)))];
  return names.length > 1 ? `${names[0]} and others` : `${names[0]}`;
}

function describeLimits({ document, isOnTrial, rules, warnings }: ValidVersion, alone: boolean): string {
  const limits = `${rules} ${rules === 1 ? 'limit' : 'limits'} for domain '${document.domain}'`;
  const text = isOnTrial
    ? `${limits} on trial: limiters show what would be refused, and refuse nothing`
    : limits;
  // With other objects in the domain, a limit that looks unused may be referenced by one of them.
  return warnings === '' || !alone ? text : `${text}; to be checked:\n${warnings}`;
}

/** The result of an object if it were created or changed now. */
export interface Preview {
  /** Why it would not be accepted; empty for an acceptable object. */
  readonly problems: readonly RuleProblem[];
  /** Rules without effect, exemptions, and other objects that would lose rules. */
  readonly warnings: readonly string[];
}

/** `merged` are the results of all objects of the domain, `before` those without the change. */
export function toPreview(
  object: CatalogObject & { readonly valid: ValidVersion },
  merged: ReadonlyMap<CatalogObject, MergeResult>,
  before: ReadonlyMap<string, ValidationResult>,
): Preview {
  const { warnings } = object.valid;
  return {
    problems: findMergeProblems(object, merged.get(object)),
    // With other objects in the domain, a limit that looks unused may be referenced by one of them.
    warnings: [
      ...(merged.size > 1 || warnings === '' ? [] : warnings.split('\n')),
      ...findLosses(object, merged, before),
    ],
  };
}

function findMergeProblems(
  object: CatalogObject & { readonly valid: ValidVersion },
  merge: MergeResult | undefined,
): readonly RuleProblem[] {
  const { document } = object.valid;
  const { domain } = document;
  const toProblem = (field: string, message: string): RuleProblem => ({
    source: document.source,
    path: domain,
    field,
    message,
  });
  switch (merge?.type) {
    case 'conflict': {
      const { winner } = merge;
      const older = `whose object ${displayName(winner)} ${describePrecedence(winner, object)}`;
      const message = `'${domain}' belongs to namespace '${winner.namespace}', ${older}: choose another domain`;
      return [toProblem('spec.domain', message)];
    }
    case 'reserved': {
      const { namespace, untilMs } = merge;
      const until = new Date(untilMs).toISOString();
      const message = `'${domain}' belonged to namespace '${namespace}', and is kept for it until ${until}: choose another domain, or wait`;
      return [toProblem('spec.domain', message)];
    }
    case 'refused': {
      const message = `'${domain}' does not belong to namespace '${object.namespace}': ${describeAllowed(object)}`;
      return [toProblem('spec.domain', message)];
    }
    case 'merged':
      return merge.duplicates.map(({ composite, field, older }) => {
        const precedence = describePrecedence(older, object);
        const message = `'${composite.slice(0, maxComposite)}' is already in ${displayName(older)}, which ${precedence}`;
        return toProblem(field, message);
      });
    default:
      return [];
  }
}

/** Other objects that are accepted now, and of which rules would be left out. */
function findLosses(
  object: CatalogObject,
  merged: ReadonlyMap<CatalogObject, MergeResult>,
  before: ReadonlyMap<string, ValidationResult>,
): readonly string[] {
  return [...merged].flatMap(([other, merge]) => {
    if (other === object || before.get(other.id)?.accepted.status !== 'True') return [];
    const { accepted } = toValidationResult(other, merge, false);
    return accepted.status === 'True' ? [] : [`${displayName(other)} loses rules: ${accepted.message}`];
  });
}
