import { findHosts } from '@tollgate/policies/read/read-policy';
import { type AllowedHosts, allowedHostsAnnotation, isHostAllowed } from './allowed-hosts.ts';
import type { KnownPolicy } from './known-policy.ts';
import { type PolicyFinding, toFinding } from './policy-result.ts';

/** Hosts of a policy that its namespace may not have. */
export interface RefusedHosts {
  readonly hosts: readonly string[];
  /**
   * All requests of these `hosts` are denied: the policy was in force there, or denied
   * them, and no other policy names the host. A missing permission may be a mistake, which must not
   * open a host. A policy that never was allowed a host has no effect on it.
   */
  readonly denied: readonly string[];
}

export const noRefusedHosts: RefusedHosts = { hosts: [], denied: [] };

/** Hosts of the version in force; those of a policy that was never valid are denied. */
export function hostsOf({ object, valid }: KnownPolicy): readonly string[] {
  return valid === undefined ? findHosts(object.manifest) : (valid.resource.spec.hosts ?? []);
}

/** Adds the hosts that are allowed now. Returns the same list when nothing has changed. */
export function collectAllowedHosts(policy: KnownPolicy, allowed: ReturnType<AllowedHosts>) {
  const before = policy.allowedHosts;
  const isAllowed = (host: string) => allowed === undefined || isHostAllowed(host, allowed);
  // A host that the policy no longer has must be allowed again when it comes back.
  const hosts = hostsOf(policy).filter((host) => isAllowed(host) || before.includes(host));
  return String(hosts) === String(before) ? before : hosts;
}

/** Finds hosts without permission by id. What namespaces may have can change at any time. */
export function findRefusedHosts(
  policies: readonly KnownPolicy[],
  allowedHosts: AllowedHosts,
): ReadonlyMap<string, RefusedHosts> {
  const refused = new Map<string, readonly string[]>();
  const owned = new Set<string>();
  for (const policy of policies) {
    const allowed = allowedHosts(policy.object.namespace);
    const byPermission = Map.groupBy(hostsOf(policy), (host) =>
      allowed === undefined || isHostAllowed(host, allowed) ? 'allowed' : 'refused',
    );
    for (const host of byPermission.get('allowed') ?? []) owned.add(host);
    const hosts = byPermission.get('refused');
    if (hosts !== undefined) refused.set(policy.id, hosts);
  }
  const found = policies.flatMap(({ id, allowedHosts: known }) => {
    const hosts = refused.get(id);
    if (hosts === undefined) return [];
    const denied = hosts.filter((host) => known.includes(host) && !owned.has(host));
    return [[id, { hosts, denied }] as const];
  });
  return new Map(found);
}

const howToAllow = (namespace: string): string =>
  `add them to the annotation ${allowedHostsAnnotation} of Namespace ${namespace}, or to XDS_ALLOWED_HOSTS`;

/** Problems of a policy with refused hosts. */
export function describeRefusedHosts(
  { object }: KnownPolicy,
  { hosts, denied }: RefusedHosts,
): readonly PolicyFinding[] {
  const { namespace } = object;
  const without = hosts.filter((host) => !denied.includes(host));
  const messages = [
    [denied, `no longer allowed for the namespace ${namespace}, so all requests are denied of`],
    [without, `not allowed for the namespace ${namespace}, so the policy has no effect on`],
  ] as const;
  return messages.flatMap(([named, message]) =>
    named.length === 0
      ? []
      : [
          toFinding(
            object,
            { field: 'spec.hosts', message: `${message} ${named.join(', ')}: ${howToAllow(namespace)}` },
            'HostNotAllowed',
          ),
        ],
  );
}
