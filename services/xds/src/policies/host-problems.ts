import { compareText } from '@tollgate/kit/text';
import type { ConfigObject } from '../catalog/source.ts';
import type { KnownPolicy } from './known-policy.ts';
import { type PolicyFinding, toFinding } from './policy-result.ts';
import { describeRefusedHosts, hostsOf, type RefusedHosts } from './refused-hosts.ts';

export const nameOf = ({ namespace, name }: Pick<ConfigObject, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`;

/** Problems by `namespace/name` of policies whose hosts are refused or belong to another policy. */
export function findHostProblems(
  policies: readonly KnownPolicy[],
  refused: ReadonlyMap<string, RefusedHosts>,
): ReadonlyMap<string, readonly PolicyFinding[]> {
  const owners = new Map<string, KnownPolicy>();
  // Auth servers let the older policy of a host apply, then the first by name.
  const order = policies.toSorted(
    ({ object: a }, { object: b }) => a.createdMs - b.createdMs || compareText(nameOf(a), nameOf(b)),
  );
  const found = order.map((policy) => {
    const hosts = refused.get(policy.id);
    const refusals = hosts === undefined ? [] : describeRefusedHosts(policy, hosts);
    return [nameOf(policy.object), [...refusals, ...findConflicts(policy, hosts, owners)]] as const;
  });
  return new Map(found.filter(([, findings]) => findings.length > 0));
}

/**
 * `owners` are the owners of hosts among older policies; those of this one are added. One that was
 * never valid denies its hosts, also to younger policies.
 */
function findConflicts(
  policy: KnownPolicy,
  refused: RefusedHosts | undefined,
  owners: Map<string, KnownPolicy>,
): readonly PolicyFinding[] {
  const hosts = hostsOf(policy).filter((host) => refused?.hosts.includes(host) !== true);
  return hosts.flatMap((host) => {
    const owner = owners.get(host);
    if (owner === undefined) owners.set(host, policy);
    if (owner === undefined || owner === policy) return [];
    const effect = owner.valid === undefined ? 'denies it, since it never was valid' : 'applies';
    const message = `${host} is a host of the older policy ${nameOf(owner.object)}, which ${effect}: remove it from one of the two`;
    return [toFinding(policy.object, { field: 'spec.hosts', message }, 'Conflicted')];
  });
}
