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
 * @param refused hosts on which policies have no effect, by id
 */
export function encodeAccess(
  namespace: string,
  config: { readonly policies: readonly ServedPolicy[]; readonly routes: readonly Route[] },
  refused: ReadonlyMap<string, readonly string[]>,
): Uint8Array {
  const sorted = config.policies.toSorted((a, b) => compareText(a.object.name, b.object.name));
  const policies = sorted.flatMap((policy) => toMessage(policy, refused.get(policy.id) ?? []) ?? []);
  const message = create(AccessConfigSchema, { name: namespace, policies, routes: [...config.routes] });
  const value = toBinary(AccessConfigSchema, message);
  return toBinary(AnySchema, create(AnySchema, { typeUrl: accessConfigType, value }));
}

/** Undefined for a policy without any host on which it has an effect. */
function toMessage({ object, valid }: ServedPolicy, refused: readonly string[]): AccessPolicy | undefined {
  const identity = { name: object.name, createdMs: BigInt(object.createdMs) };
  const isServed = (host: string) => !refused.includes(host);
  if (valid === undefined)
    return create(AccessPolicySchema, {
      ...identity,
      deniedHosts: findHosts(object.manifest).filter(isServed),
    });
  const hosts = valid.resource.spec.hosts?.filter(isServed);
  if (hosts?.length === 0) return undefined;
  const spec = refused.length === 0 ? valid.json : JSON.stringify({ ...Object(valid.spec), hosts });
  return create(AccessPolicySchema, { ...identity, spec });
}
