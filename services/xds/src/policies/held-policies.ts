import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import type { ConfigObject, HeldObject } from '../catalog/source.ts';
import type { HeldForm } from '../deletions.ts';
import type { KnownPolicy } from './known-policy.ts';

/** Access policies in a store, which `read` reads again. */
export const heldPolicies = (read: (object: ConfigObject) => KnownPolicy): HeldForm<KnownPolicy> => ({
  toHeld,
  fromHeld: (held) => read(fromHeld(held)),
});

/** The spec of a policy that was never valid tells which hosts are denied. */
function toHeld({ object, valid, allowedHosts }: KnownPolicy): HeldObject {
  const { id, uid, generation, createdMs, manifest } = object;
  return {
    id,
    uid,
    generation,
    createdMs,
    allowedHosts,
    spec: valid?.spec ?? Reflect.get(Object(manifest), 'spec'),
  };
}

function fromHeld({ id, spec, ...identity }: HeldObject): ConfigObject {
  const [name = '', namespace = ''] = id.split('/').toReversed();
  const manifest = { apiVersion: policyApiVersion, kind: policyKind, metadata: { namespace, name }, spec };
  return { ...identity, id, namespace, name, order: id, manifest };
}
