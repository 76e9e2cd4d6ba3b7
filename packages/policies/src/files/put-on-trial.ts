import { isDeepStrictEqual } from 'node:util';
import { nameBounds } from '@tollgate/rules/fields';
import { resourceKind } from '@tollgate/rules/resource-shape';
import {
  differingForms,
  hasTrial,
  type Limit,
  limitsOf,
  type Manifest,
  mapLimits,
  nameOf,
  parts,
  toList,
  toMapping,
  trialSuffix,
} from './trial.ts';

type Part = (typeof parts)[number];

/** A candidate on trial, or why it cannot be. */
type TrialResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly message: string };

/** @see https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ */
const maxObjectNameChars = 253;

/**
 * Puts a candidate on trial beside what is in force: a RateLimitConfig as a second object, and the
 * limits of an AccessPolicy that differ as further limits of the version in force. What would count
 * other requests, or could not be promoted, is refused with what to change.
 *
 * @param live the version in force of the same object, if there is one
 */
export function putOnTrial(candidate: Manifest, live: Manifest | undefined): TrialResult {
  const isConfig = candidate.kind === resourceKind;
  const message = isConfig ? findConfigObstacle(candidate, live) : findPolicyObstacle(candidate, live);
  if (message !== undefined) return { ok: false, message };
  return { ok: true, manifest: isConfig ? toTrialConfig(candidate) : toTrialPolicy(candidate, live) };
}

function findConfigObstacle(candidate: Manifest, live: Manifest | undefined): string | undefined {
  const name = trialConfigName(candidate).slice(0, -trialSuffix.length);
  return (
    findLongName('object', name, maxObjectNameChars) ??
    (live && differingForms({ what: 'candidate', manifest: candidate }, live))
  );
}

function findPolicyObstacle(candidate: Manifest, live: Manifest | undefined): string | undefined {
  const [spec, before] = [toMapping(candidate.spec), toMapping(live?.spec)];
  const changed = findChangedLimits(candidate, live);
  const shadow = changed.find(({ limit }) => limit.mode === 'Shadow')?.limit;
  // A limit has one mode: one with Shadow would lose it, and deny when it is promoted.
  if (shadow !== undefined)
    return `the limit '${String(shadow.name)}' has the mode Shadow, which never denies: apply it without a trial, or remove its mode`;
  if (live === undefined) return undefined;
  const named = new Set([spec, before].flatMap(namesInRules));
  return (
    changed
      .flatMap((one) => [
        one.isNew ? undefined : findLongName('limit', String(one.limit.name), nameBounds.max),
        one.part === 'overrides' ? undefined : findRuleObstacle(one, named),
      ])
      .find((message) => message !== undefined) ?? findOtherPlace(spec, before)
  );
}

/** The limits of the candidate that differ from those in force; a new one needs no suffix. */
function findChangedLimits(candidate: Manifest, live: Manifest | undefined) {
  return parts.flatMap((part) => {
    const inForce = limitsInForce(live, part);
    return findChanged(limitsOf(toMapping(candidate.spec), part), inForce).map((limit) => ({
      ...{ part, limit, isNew: !inForce.some(({ name }) => name === limit.name) },
    }));
  });
}

function findLongName(what: string, name: string, maxChars: number): string | undefined {
  const most = maxChars - trialSuffix.length;
  if (name.length <= most) return undefined;
  return `the name of the ${what} '${name}' has more than ${most} characters, and no space for the suffix ${trialSuffix}: shorten it in the version in force first`;
}

/** The rules in force do not name the trial, so that it would count other requests. */
function findRuleObstacle(
  { limit, isNew }: { readonly limit: Limit; readonly isNew: boolean },
  named: ReadonlySet<unknown>,
): string | undefined {
  if (limit.only !== true && !named.has(limit.name)) return undefined;
  if (limit.mode === 'Trial')
    return `the limit '${String(limit.name)}' has the mode Trial and is for rules that name it: apply the policy as it is`;
  const name = isNew ? String(limit.name) : toTrialName(limit);
  const reason =
    limit.only === true ? 'has only, so that it applies where rules name it' : 'is named by rules';
  return `the limit '${String(limit.name)}' ${reason}, and a trial changes no rules: add it to the policy as '${name}' with mode: Trial, and name '${name}' in these rules, too`;
}

function namesInRules({ rules }: Limit): readonly unknown[] {
  return toList(rules).flatMap(({ limits }) => (Array.isArray(limits) ? (limits as unknown[]) : []));
}

/** A policy has limits in one of these places. */
const places = [
  ['spec', undefined],
  ['spec.defaults', 'defaults'],
] as const;

function findOtherPlace(spec: Limit, before: Limit): string | undefined {
  const findPlace = (one: Limit) => places.find(([, part]) => limitsOf(one, part).length > 0)?.[0];
  const [place, inForce] = [findPlace(spec), findPlace(before)];
  if (place === undefined || inForce === undefined || place === inForce) return undefined;
  return `the candidate has limits in ${place}, and the policy in force in ${inForce}: write both in the same place`;
}

function toTrialConfig(candidate: Manifest): Manifest {
  return {
    ...candidate,
    metadata: { ...toMapping(candidate.metadata), name: trialConfigName(candidate) },
    spec: { ...toMapping(candidate.spec), trial: true },
  };
}

function trialConfigName(candidate: Manifest): string {
  const { name } = nameOf(candidate);
  return hasTrial(candidate) && name.endsWith(trialSuffix) ? name : `${name}${trialSuffix}`;
}

function toTrialPolicy(candidate: Manifest, live: Manifest | undefined): Manifest {
  const changed = findChangedLimits(candidate, live);
  return mapLimits(live ?? candidate, (limits, part) => {
    if (live === undefined) return limits.map((limit) => ({ ...limit, mode: 'Trial' }));
    const onTrial = changed
      .filter((one) => one.part === part)
      .map(({ limit, isNew }) => ({ ...limit, ...(!isNew && { name: toTrialName(limit) }), mode: 'Trial' }));
    const names = new Set<unknown>(onTrial.map(({ name }: Limit) => name));
    return [...limits.filter(({ mode, name }) => mode !== 'Trial' || !names.has(name)), ...onTrial];
  });
}

function limitsInForce(live: Manifest | undefined, part: Part): readonly Limit[] {
  return limitsOf(toMapping(live?.spec), part).filter(({ mode }) => mode !== 'Trial');
}

function findChanged(limits: readonly Limit[], inForce: readonly Limit[]): readonly Limit[] {
  return limits.filter((limit) => !inForce.some((one) => isDeepStrictEqual(one, limit)));
}

function toTrialName({ name }: Limit): string {
  return `${String(name)}${trialSuffix}`;
}
