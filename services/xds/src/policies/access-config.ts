import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { compareText } from '@tollgate/kit/text';
import type { PolicyResource } from '@tollgate/policies/definition/spec';
import { findHosts } from '@tollgate/policies/read/read-policy';
import {
  AccessConfigSchema,
  type AccessPolicy,
  AccessPolicySchema,
  type Route,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import type { ConfigObject } from '../catalog/source.ts';
import { noRefusedHosts, type RefusedHosts } from './refused-hosts.ts';

/** Type URL of the resources for auth servers. */
export const accessConfigType = `type.googleapis.com/${AccessConfigSchema.typeName}`;

interface ServedPolicy {
  readonly id: string;
  readonly object: ConfigObject;
  /** The version in force; undefined if there never was a valid one. */
  readonly valid:
    | { readonly resource: PolicyResource; readonly spec: unknown; readonly json: string }
    | undefined;
}

/**
 * The encoded `google.protobuf.Any` with the AccessConfig of a namespace.
 *
 * @param refused hosts that policies may not have, by id
 */
export function encodeAccess(
  namespace: string,
  config: { readonly policies: readonly ServedPolicy[]; readonly routes: readonly Route[] },
  refused: ReadonlyMap<string, RefusedHosts>,
): Uint8Array {
  const sorted = config.policies.toSorted((a, b) => compareText(a.object.name, b.object.name));
  const policies = sorted.flatMap((policy) => toMessages(policy, refused.get(policy.id) ?? noRefusedHosts));
  const message = create(AccessConfigSchema, { name: namespace, policies, routes: [...config.routes] });
  const value = toBinary(AccessConfigSchema, message);
  return toBinary(AnySchema, create(AnySchema, { typeUrl: accessConfigType, value }));
}

/**
 * Empty for a policy without any host on which it has an effect. The message of denied hosts is
 * apart, and first: the last one of a name is the policy of routes that name it.
 */
function toMessages(
  { object, valid }: ServedPolicy,
  { hosts: refused, denied }: RefusedHosts,
): readonly AccessPolicy[] {
  const identity = { name: object.name, createdMs: BigInt(object.createdMs) };
  const isAllowed = (host: string) => !refused.includes(host);
  const deny = (deniedHosts: readonly string[]) =>
    create(AccessPolicySchema, { ...identity, deniedHosts: [...deniedHosts] });
  if (valid === undefined) return [deny([...findHosts(object.manifest).filter(isAllowed), ...denied])];
  const hosts = valid.resource.spec.hosts?.filter(isAllowed);
  const spec = refused.length === 0 ? valid.json : JSON.stringify({ ...Object(valid.spec), hosts });
  return [
    ...(denied.length === 0 ? [] : [deny(denied)]),
    ...(hosts?.length === 0 ? [] : [create(AccessPolicySchema, { ...identity, spec })]),
  ];
}
