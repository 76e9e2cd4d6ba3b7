import { isDeepStrictEqual } from 'node:util';
import { isMapping } from '@tollgate/rules/resource-fields';
import { resourceKind, ruleFields } from '@tollgate/rules/resource-shape';
import { policyDomain, policyKind } from '../definition/resource-shape.ts';

/** An AccessPolicy or RateLimitConfig, decoded from YAML. */
export type Manifest = Readonly<Record<string, unknown>>;

/** Ends the names of what is on trial beside the one in force. */
const trialSuffix = '-trial';

/** Limits of an AccessPolicy are in these parts of its spec. */
const parts = [undefined, 'defaults', 'overrides'] as const;

/** Whether a RateLimitConfig is on trial, or a limit of an AccessPolicy. */
export function hasTrial(manifest: Manifest): boolean {
  const spec = toMapping(manifest.spec);
  return manifest.kind === policyKind
    ? parts.some((part) => limitsOf(spec, part).some(({ mode }) => mode === 'Trial'))
    : spec.trial === true;
}

/** Namespace and name of a manifest. */
export function nameOf({ metadata }: Manifest): { readonly namespace: string; readonly name: string } {
  const { namespace = 'default', name = '' } = toMapping(metadata);
  return { namespace: String(namespace), name: String(name) };
}

/** Domain of the limits of a manifest. */
export function domainOf(manifest: Manifest): string {
  const { kind, spec } = manifest;
  if (kind === policyKind) return policyDomain(nameOf(manifest));
  return isMapping(spec) ? String(spec.domain) : '';
}

/** A candidate on trial, or why it cannot be. */
type TrialResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly message: string };

/**
 * Puts a candidate on trial beside what is in force: a RateLimitConfig as a second object, and the
 * limits of an AccessPolicy that differ as further limits of the version in force. A limit has one
 * mode: one with Shadow would lose it, and deny when it is promoted.
 *
 * @param live the version in force of the same object, if there is one
 */
export function putOnTrial(candidate: Manifest, live: Manifest | undefined): TrialResult {
  if (candidate.kind === resourceKind) return { ok: true, manifest: toTrialConfig(candidate) };
  const spec = toMapping(candidate.spec);
  const shadow = parts
    .flatMap((part) => findChanged(limitsOf(spec, part), limitsInForce(live, part)))
    .find(({ mode }) => mode === 'Shadow');
  if (shadow === undefined) return { ok: true, manifest: toTrialPolicy(candidate, live) };
  const message = `the limit '${String(shadow.name)}' has the mode Shadow, which never denies: apply it without a trial, or remove its mode`;
  return { ok: false, message };
}

function toTrialConfig(candidate: Manifest): Manifest {
  const { name } = nameOf(candidate);
  const trialName = name.endsWith(trialSuffix) ? name : `${name}${trialSuffix}`;
  return {
    ...candidate,
    metadata: { ...toMapping(candidate.metadata), name: trialName },
    spec: { ...toMapping(candidate.spec), trial: true },
  };
}

function toTrialPolicy(candidate: Manifest, live: Manifest | undefined): Manifest {
  const spec = toMapping(candidate.spec);
  return mapLimits(live ?? candidate, (limits, part) => {
    if (live === undefined) return limits.map((limit) => ({ ...limit, mode: 'Trial' }));
    const inForce = limitsInForce(live, part);
    const onTrial = findChanged(limitsOf(spec, part), inForce).map((limit) => {
      const isNew = !inForce.some(({ name }) => name === limit.name);
      return { ...limit, ...(!isNew && { name: toTrialName(limit) }), mode: 'Trial' };
    });
    const names = new Set(onTrial.map(({ name }: Limit) => name));
    return [...limits.filter(({ mode, name }) => mode !== 'Trial' || !names.has(name)), ...onTrial];
  });
}

function limitsInForce(live: Manifest | undefined, part: (typeof parts)[number]): readonly Limit[] {
  return limitsOf(toMapping(live?.spec), part).filter(({ mode }) => mode !== 'Trial');
}

function findChanged(limits: readonly Limit[], inForce: readonly Limit[]): readonly Limit[] {
  return limits.filter((limit) => !inForce.some((one) => isDeepStrictEqual(one, limit)));
}

/** A change that puts a trial into force. */
export interface Promotion {
  /** The object to apply. */
  readonly manifest: Manifest;
  /** Whether the object on trial is another one, to be deleted afterwards. */
  readonly replacesTrial: boolean;
}

/**
 * Puts a trial into force. Limits of an AccessPolicy replace those without the suffix of their
 * name; so does a RateLimitConfig in the object without the suffix, which keeps its other limits
 * and gets the settings of the trial.
 *
 * @param live the RateLimitConfig in force without the suffix, if there is one
 */
export function promote(trial: Manifest, live?: Manifest): Promotion {
  if (trial.kind !== resourceKind) return { manifest: mapLimits(trial, promoteLimits), replacesTrial: false };
  const { trial: _trial, ...spec } = toMapping(trial.spec);
  const before = toMapping(live?.spec);
  const merged = mergeSpecs(before, spec);
  return live === undefined || merged === undefined
    ? { manifest: { ...trial, spec }, replacesTrial: false }
    : { manifest: { ...live, spec: merged }, replacesTrial: true };
}

/** A trial that a person may put into force. */
export interface PromotableTrial<Object> {
  /** The object on trial. */
  readonly trial: Object;
  /** The RateLimitConfig in force that gets its limits. */
  readonly live: Object | undefined;
  readonly promotion: Promotion;
}

/** Finds the trials among the objects of a domain. */
export function findTrials<Object extends { readonly manifest: Manifest }>(
  objects: readonly Object[],
): readonly PromotableTrial<Object>[] {
  return objects
    .filter(({ manifest }) => hasTrial(manifest))
    .map((trial) => {
      const { namespace, name } = nameOf(trial.manifest);
      const replaced = trial.manifest.kind === resourceKind ? promotedName({ name }) : undefined;
      const live = objects.find(({ manifest }) => {
        const other = nameOf(manifest);
        return other.namespace === namespace && other.name === replaced && !hasTrial(manifest);
      });
      return { trial, live, promotion: promote(trial.manifest, live?.manifest) };
    });
}

/** The name of the object that a RateLimitConfig on trial would replace; undefined without one. */
export function promotedName({ name }: { readonly name: string }): string | undefined {
  return name.endsWith(trialSuffix) ? name.slice(0, -trialSuffix.length) : undefined;
}

type Limit = Readonly<Record<string, unknown>>;

function promoteLimits(limits: readonly Limit[]): readonly Limit[] {
  const onTrial = limits.filter(({ mode }) => mode === 'Trial');
  const replacements = new Map(
    onTrial.flatMap(({ mode: _mode, ...limit }) => {
      const name = promotedName({ name: String(limit.name) });
      return name !== undefined && limits.some((one) => one.name === name) ? [[name, limit] as const] : [];
    }),
  );
  return limits.flatMap(({ mode, ...limit }) => {
    const replacement = replacements.get(String(limit.name));
    if (replacement !== undefined) return [{ ...replacement, name: limit.name }];
    if (mode !== 'Trial') return [{ ...limit, ...(mode !== undefined && { mode }) }];
    const replaced = promotedName({ name: String(limit.name) });
    return replaced !== undefined && replacements.has(replaced) ? [] : [limit];
  });
}

/** Undefined where one has `limits`, and the other `descriptors`. */
function mergeSpecs(before: Limit, after: Limit): Limit | undefined {
  for (const list of ['limits', 'descriptors'] as const)
    if (Array.isArray(before[list]) && Array.isArray(after[list]))
      return { ...after, [list]: mergeLists(toList(before[list]), toList(after[list])) };
  return undefined;
}

/** Items of `after` replace the same ones, and merge with their children. */
function mergeLists(before: readonly Limit[], after: readonly Limit[]): readonly Limit[] {
  const replacements = new Map(after.flatMap((item) => identify(item).map((id) => [id, item] as const)));
  const used = new Set<Limit>();
  const kept = before.flatMap((item) => {
    const other = identify(item)
      .map((id) => replacements.get(id))
      .find((one) => one !== undefined);
    if (other === undefined) return [item];
    if (used.has(other)) return [];
    used.add(other);
    return [mergeItem(item, other)];
  });
  return [...kept, ...after.filter((item) => !used.has(item))];
}

const limitNames: ReadonlySet<string> = new Set(ruleFields.map(({ name }) => name));

/** A descriptor without a limit only leads to others: it leaves the limit in force. */
function mergeItem(before: Limit, after: Limit): Limit {
  const descriptors = mergeLists(toList(before.descriptors), toList(after.descriptors));
  const keepsLimit = isMapping(before.rateLimit) && !isMapping(after.rateLimit);
  const limit = Object.entries(before).filter(([name]) => limitNames.has(name));
  const others = Object.entries(after).filter(([name]) => !limitNames.has(name));
  return {
    ...(keepsLimit ? Object.fromEntries([...others, ...limit]) : after),
    ...(descriptors.length > 0 && { descriptors }),
  };
}

/** By key and value for a descriptor, else by what a limit matches, and by its name. */
function identify({ key, value, name, match }: Limit): readonly string[] {
  if (match === undefined) return [JSON.stringify(['key', key, value ?? ''])];
  const entries = toList(match).map((entry) => [entry.key, entry.value ?? '']);
  return [JSON.stringify(['match', entries]), JSON.stringify(['name', name])];
}

function mapLimits(
  manifest: Manifest,
  change: (limits: readonly Limit[], part: (typeof parts)[number]) => readonly Limit[],
): Manifest {
  let spec = toMapping(manifest.spec);
  for (const part of parts) {
    const limits = change(limitsOf(spec, part), part);
    if (limits.length === 0) continue;
    spec =
      part === undefined ? { ...spec, limits } : { ...spec, [part]: { ...toMapping(spec[part]), limits } };
  }
  return { ...manifest, spec };
}

function limitsOf(spec: Limit, part: (typeof parts)[number]): readonly Limit[] {
  return toList((part === undefined ? spec : toMapping(spec[part])).limits);
}

function toTrialName({ name }: Limit): string {
  return `${String(name)}${trialSuffix}`;
}

function toMapping(value: unknown): Limit {
  return isMapping(value) ? value : {};
}

function toList(value: unknown): readonly Limit[] {
  return Array.isArray(value) ? value.filter(isMapping) : [];
}
