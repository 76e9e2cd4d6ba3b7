import { isMapping } from '@tollgate/rules/resource-fields';
import { resourceKind, ruleFields } from '@tollgate/rules/resource-shape';
import { policyDomain, policyKind } from '../definition/resource-shape.ts';

/** An AccessPolicy or RateLimitConfig, decoded from YAML. */
export type Manifest = Readonly<Record<string, unknown>>;

/** Ends the names of what is on trial beside the one in force. */
export const trialSuffix = '-trial';

/** Limits of an AccessPolicy are in these parts of its spec. */
export const parts = [undefined, 'defaults', 'overrides'] as const;

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

/** A change that puts a trial into force. */
interface Promotion {
  readonly ok: true;
  /** The object to apply. */
  readonly manifest: Manifest;
  /** Whether the object on trial is another one, to be deleted afterwards. */
  readonly replacesTrial: boolean;
}

/** A change that puts a trial into force, or why there is none. */
export type PromotionResult = Promotion | { readonly ok: false; readonly message: string };

/**
 * Puts a trial into force. Limits of an AccessPolicy replace those without the suffix of their
 * name; so does a RateLimitConfig in the object without the suffix, which keeps its other limits
 * and gets the settings of the trial.
 *
 * @param live the RateLimitConfig in force without the suffix, if there is one
 */
export function promote(trial: Manifest, live?: Manifest): PromotionResult {
  const manifest = withoutTrial(trial);
  if (trial.kind !== resourceKind || live === undefined) return { ok: true, manifest, replacesTrial: false };
  const message = differingForms({ what: 'trial', manifest }, live);
  if (message !== undefined) return { ok: false, message };
  const spec = mergeSpecs(toMapping(live.spec), toMapping(manifest.spec));
  return { ok: true, manifest: { ...live, spec }, replacesTrial: true };
}

/** A trial as it would be in force, without the RateLimitConfig that it replaces. */
export function withoutTrial(trial: Manifest): Manifest {
  const { trial: _trial, ...spec } = toMapping(trial.spec);
  return trial.kind === resourceKind ? { ...trial, spec } : renameInRules(mapLimits(trial, promoteLimits));
}

/** Rules that named a limit on trial name the one that it has replaced. */
function renameInRules(policy: Manifest): Manifest {
  const spec = toMapping(policy.spec);
  if (!Array.isArray(spec.rules)) return policy;
  const names = new Set(parts.flatMap((part) => limitsOf(spec, part).map(({ name }) => name)));
  const rename = (name: unknown) => (names.has(name) ? name : (promotedName({ name: String(name) }) ?? name));
  const rules = toList(spec.rules).map((rule) => ({
    ...rule,
    ...(Array.isArray(rule.limits) && { limits: [...new Set(rule.limits.map(rename))] }),
  }));
  return { ...policy, spec: { ...spec, rules } };
}

/** Both forms of the rules of a RateLimitConfig. */
const forms = ['limits', 'descriptors'] as const;

/** Why two RateLimitConfigs cannot be merged: one has `limits`, and the other `descriptors`. */
export function differingForms(
  { what, manifest }: { readonly what: string; readonly manifest: Manifest },
  live: Manifest,
): string | undefined {
  const formOf = ({ spec }: Manifest) => forms.find((form) => Array.isArray(toMapping(spec)[form]));
  const [form = 'no limits', inForce = 'none'] = [formOf(manifest), formOf(live)];
  if (form === inForce) return undefined;
  return `the ${what} has ${form}, and the object in force ${inForce}: write both in the same form`;
}

/** A trial that a person may put into force. */
export interface PromotableTrial<Object> {
  /** The object on trial. */
  readonly trial: Object;
  /** The RateLimitConfig in force that gets its limits. */
  readonly live: Object | undefined;
  readonly promotion: PromotionResult;
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

export type Limit = Readonly<Record<string, unknown>>;

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

/** Merges specs of the same form. */
function mergeSpecs(before: Limit, after: Limit): Limit {
  const merged = forms
    .filter((form) => Array.isArray(after[form]))
    .map((form) => [form, mergeLists(toList(before[form]), toList(after[form]))] as const);
  return { ...after, ...Object.fromEntries(merged) };
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

/** Changes the limits of all parts of an AccessPolicy. */
export function mapLimits(
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

/** The limits of a part of the spec of an AccessPolicy. */
export function limitsOf(spec: Limit, part: (typeof parts)[number]): readonly Limit[] {
  return toList((part === undefined ? spec : toMapping(spec[part])).limits);
}

export function toMapping(value: unknown): Limit {
  return isMapping(value) ? value : {};
}

export function toList(value: unknown): readonly Limit[] {
  return Array.isArray(value) ? value.filter(isMapping) : [];
}
