import type { PolicyResource } from '../definition/spec.ts';
import { everyPath } from '../match/path-pattern.ts';
import { compileMatch } from '../match/request-match.ts';
import { RouteTable } from '../match/route-table.ts';
import type { CompiledPolicy } from './compile.ts';

/** A policy that was compiled, and what decides between policies for the same host. */
export interface NamedPolicy {
  readonly resource: PolicyResource;
  /** Unix time in milliseconds. */
  readonly createdMs: number;
  readonly policy: CompiledPolicy;
}

/** Finds the policy of a request by its host. Of two policies for a host, the older one applies. */
export function createPolicyTable(policies: readonly NamedPolicy[]): RouteTable<CompiledPolicy> {
  const every = compileMatch({ path: everyPath });
  const matches = every.ok ? [every.match] : [];
  return new RouteTable(
    policies.map(({ resource, createdMs, policy }) => ({
      hosts: resource.spec.hosts ?? [],
      matches,
      route: { createdMs, name: `${resource.namespace}/${resource.name}` },
      value: policy,
    })),
  );
}
