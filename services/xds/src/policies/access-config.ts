import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { compareText } from '@tollgate/kit/text';
import { findHosts } from '@tollgate/policies/read/read-policy';
import {
  AccessConfigSchema,
  AccessPolicySchema,
  type Route,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import type { ConfigObject } from '../catalog/source.ts';

/** Type URL of the resources for auth servers. */
export const accessConfigType = `type.googleapis.com/${AccessConfigSchema.typeName}`;

interface ServedPolicy {
  readonly object: ConfigObject;
  /** The version in force; undefined if there never was a valid one. */
  readonly valid: { readonly json: string } | undefined;
}

/** The encoded `google.protobuf.Any` with the AccessConfig of a namespace. */
export function encodeAccess(
  namespace: string,
  policies: readonly ServedPolicy[],
  routes: readonly Route[],
): Uint8Array {
  const sorted = policies.toSorted((a, b) => compareText(a.object.name, b.object.name));
  const message = create(AccessConfigSchema, {
    name: namespace,
    policies: sorted.map(({ object, valid }) =>
      create(AccessPolicySchema, {
        name: object.name,
        createdMs: BigInt(object.createdMs),
        ...(valid === undefined ? { deniedHosts: [...findHosts(object.manifest)] } : { spec: valid.json }),
      }),
    ),
    routes: [...routes],
  });
  const value = toBinary(AccessConfigSchema, message);
  return toBinary(AnySchema, create(AnySchema, { typeUrl: accessConfigType, value }));
}
