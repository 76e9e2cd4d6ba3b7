import { compareText } from '@tollgate/kit/text';
import type { AncestorRef, PolicyAncestor } from '../policies/policy-result.ts';
import { type Gateway, gatewayGroup } from './objects.ts';
import { readTargets, type Target, type TargetedPolicy } from './policy-targets.ts';
import type { PolicyPrecedence } from './precedence.ts';
import type { UnenforcedPolicies } from './unenforced.ts';

/**
 * Finds the Gateways that the targets of policies belong to, by `namespace/name` of the policy. A
 * target that no Gateway has is its own ancestor, so that its policy has a status nevertheless.
 * `unenforced` is undefined while it is not known.
 */
export function findAncestors(
  policies: readonly TargetedPolicy[],
  gatewaysOf: (target: Target) => readonly Gateway[],
  {
    unenforced,
    precedence,
  }: { readonly unenforced: UnenforcedPolicies | undefined; readonly precedence: PolicyPrecedence },
): ReadonlyMap<string, readonly PolicyAncestor[]> {
  const found = policies.map((policy) => {
    const refs = new Map<string, AncestorRef>();
    for (const target of readTargets(policy))
      for (const ref of toRefs(target, gatewaysOf(target))) refs.set(toKey(ref), ref);
    const sorted = [...refs].toSorted(([one], [other]) => compareText(one, other));
    const { id } = policy.object;
    const toAncestor = (ref: AncestorRef): PolicyAncestor => {
      const found = unenforced?.find(id, ref);
      return { ref, ...(found && { unenforced: found }), ...precedence.find(id, ref) };
    };
    return [id, sorted.map(([, ref]) => toAncestor(ref))] as const;
  });
  return new Map(found.filter(([, ancestors]) => ancestors.length > 0));
}

/** A listener that is a target is named; the Gateways of a route take it at any listener. */
function toRefs(target: Target, gateways: readonly Gateway[]): readonly AncestorRef[] {
  const { kind, namespace, name, sectionName } = target;
  if (kind === 'Gateway' || gateways.length === 0)
    return [
      { group: gatewayGroup, kind, namespace, name, ...(sectionName !== undefined && { sectionName }) },
    ];
  return gateways.map(({ object }) => ({
    ...{ group: gatewayGroup, kind: 'Gateway', namespace: object.namespace, name: object.name },
  }));
}

const toKey = ({ kind, namespace, name, sectionName = '' }: AncestorRef): string =>
  `${kind}/${namespace}/${name}/${sectionName}`;
