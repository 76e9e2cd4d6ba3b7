import { compareText } from '@tollgate/kit/text';
import type { PolicyResource } from '@tollgate/policies/definition/spec';
import type { ConfigObject } from '../catalog/source.ts';
import { type PolicyFinding, toFinding } from '../policies/policy-result.ts';
import { toList, toText, toValues } from './objects.ts';

/** A policy, which may have no targets. */
export interface TargetedPolicy {
  readonly object: ConfigObject;
  /** Undefined when there never was a valid version. */
  readonly resource: PolicyResource | undefined;
}

/** An object, or a part of it, that a policy can be for. */
export interface Target {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** A rule of a route or a listener; undefined for the whole object. */
  readonly sectionName?: string | undefined;
}

const keyOf = ({ kind, namespace, name, sectionName = '' }: Target): string =>
  `${kind}/${namespace}/${name}/${sectionName}`;

/** Policies by target: of several, the oldest, then the first by name. */
export class PolicyTargets {
  readonly #owners = new Map<string, TargetedPolicy>();
  /** Problems by `namespace/name` of the policy. */
  readonly problems = new Map<string, PolicyFinding[]>();

  /** `exists` and `isAttached` tell whether the cluster has a target, and a listener takes it. */
  constructor(
    policies: readonly TargetedPolicy[],
    exists: (target: Target) => boolean,
    isAttached: (target: Target) => boolean,
  ) {
    const order = policies.toSorted(
      ({ object: a }, { object: b }) => a.createdMs - b.createdMs || compareText(a.id, b.id),
    );
    for (const policy of order)
      for (const [index, target] of readTargets(policy).entries())
        this.#add(policy, { index, target, exists, isAttached });
  }

  /** `namespace/name` of the policy of a target. */
  find(target: Target): string | undefined {
    return this.#owners.get(keyOf(target))?.object.id;
  }

  /**
   * Objects, each `kind/namespace/name`, whose policies or whose parts' policies are others than
   * before.
   */
  findChanged(before: PolicyTargets): ReadonlySet<string> {
    const changed = new Set<string>();
    for (const key of new Set([...this.#owners.keys(), ...before.#owners.keys()])) {
      const [one, other] = [this.#owners.get(key), before.#owners.get(key)];
      const isSame =
        one === other || (one?.object.id === other?.object.id && mayOverride(one) === mayOverride(other));
      if (!isSame) changed.add(key.slice(0, key.lastIndexOf('/')));
    }
    return changed;
  }

  /**
   * Returns the policies of these targets that have overrides, or may have had them: one that was
   * never valid denies what a policy of a route could loosen.
   */
  findOverrides(targets: readonly Target[]): string[] {
    return targets.flatMap((target) => {
      const policy = this.#owners.get(keyOf(target));
      return policy !== undefined && mayOverride(policy) ? policy.object.id : [];
    });
  }

  #add(policy: TargetedPolicy, { index, target, exists, isAttached }: Placed): void {
    const key = keyOf(target);
    const owner = this.#owners.get(key);
    if (owner === undefined) this.#owners.set(key, policy);
    const field = `spec.targetRefs[${index}]`;
    const { kind, namespace, name, sectionName } = target;
    const isPresent = exists(target);
    if (!isPresent && !exists({ kind, namespace, name })) {
      const message = `there is no ${kind} ${name} in namespace ${namespace}`;
      this.#report(policy, toFinding(policy.object, { field, message }, 'TargetNotFound'));
    } else if (!isPresent) {
      const part = kind === 'Gateway' ? 'HTTP listener' : 'rule';
      const message = `${kind} ${name} has no ${part} with the line name: ${sectionName}`;
      const finding = { field: `${field}.sectionName`, message };
      this.#report(policy, toFinding(policy.object, finding, 'TargetNotFound'));
    }
    if (isPresent && !isAttached(target)) {
      const message = `no listener accepts ${kind} ${name}, so its requests are denied or have the default access: compare its parentRefs and hostnames with allowedRoutes and hostname of the listeners`;
      this.#report(policy, toFinding(policy.object, { field, message }, 'TargetNotFound'));
    }
    if (owner === undefined || owner === policy) return;
    const section = sectionName === undefined ? '' : ` (${sectionName})`;
    const message = `${kind} ${name}${section} has the older policy ${owner.object.id}, which applies: delete one of the two`;
    this.#report(policy, toFinding(policy.object, { field, message }, 'Conflicted'));
  }

  #report({ object }: TargetedPolicy, finding: PolicyFinding): void {
    const known = this.problems.get(object.id);
    if (known === undefined) this.problems.set(object.id, [finding]);
    else known.push(finding);
  }
}

interface Placed {
  readonly index: number;
  readonly target: Target;
  readonly exists: (target: Target) => boolean;
  /** Whether a listener accepts the route. */
  readonly isAttached: (target: Target) => boolean;
}

const mayOverride = (policy: TargetedPolicy | undefined): boolean =>
  policy !== undefined && (policy.resource === undefined || policy.resource.spec.overrides !== undefined);

/** Targets of a version that is in force, else of the manifest, which may be invalid. */
export function readTargets({ object, resource }: TargetedPolicy): readonly Target[] {
  const { namespace } = object;
  const refs =
    resource === undefined
      ? toList(toValues(toValues(object.manifest).spec).targetRefs)
      : (resource.spec.targetRefs ?? []);
  return refs.map(({ kind, name, sectionName }) => ({
    ...{ kind: toText(kind) ?? '', namespace, name: toText(name) ?? '' },
    sectionName: toText(sectionName),
  }));
}
