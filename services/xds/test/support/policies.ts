import type { ConfigObject } from '../../src/catalog/source.ts';

/** A limit of 60 requests a minute for each user. */
export const perUser = { name: 'per-user', by: ['User'], requests: 60, per: 'Minute' };

/** The AccessPolicy `namespace/name` as a source reads it. */
export function makePolicy(id: string, spec: object, given: Partial<ConfigObject> = {}): ConfigObject {
  const [namespace = '', name = ''] = id.split('/');
  const manifest = {
    ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy' },
    ...{ metadata: { namespace, name }, spec },
  };
  return { ...{ id, namespace, name, uid: id, generation: 1, createdMs: 0, order: id }, manifest, ...given };
}
