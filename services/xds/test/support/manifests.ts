import type { ConfigObject } from '../../src/catalog/source.ts';

/** One top-level rule: a key with a value, and what a minute allows. */
export interface TestRule {
  readonly key: string;
  readonly value?: string;
  readonly requestsPerUnit?: number;
}

/** A descriptor of a manifest. */
export function makeDescriptor({ key, value, requestsPerUnit = 10 }: TestRule) {
  return {
    key,
    ...(value === undefined ? undefined : { value }),
    rateLimit: { unit: 'Minute', requestsPerUnit },
  };
}

/** A manifest as the API server hands it out. */
function makeManifest(id: string, spec: unknown): Record<string, unknown> {
  const [namespace = '', name = ''] = id.split('/');
  return {
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { namespace, name },
    spec,
  };
}

/** Content of an object; by default a first version of age 0. */
export interface TestObject {
  readonly domain?: string;
  readonly rules?: readonly TestRule[];
  /** Replaces domain and rules. */
  readonly spec?: unknown;
  readonly uid?: string;
  readonly generation?: number;
  readonly createdMs?: number;
  readonly label?: string;
  readonly status?: unknown;
}

/** An object of the catalog. */
export function makeObject(id: string, given: TestObject = {}): ConfigObject {
  const [namespace = '', name = ''] = id.split('/');
  const {
    domain = 'shop',
    rules = [{ key: 'k' }],
    uid = id,
    generation = 1,
    createdMs = 0,
    label,
    status,
  } = given;
  const spec = given.spec ?? { domain, descriptors: rules.map(makeDescriptor) };
  return {
    id,
    namespace,
    name,
    uid,
    generation,
    createdMs,
    order: id,
    manifest: { ...makeManifest(id, spec), ...(status === undefined ? undefined : { status }) },
    ...(label === undefined ? undefined : { label }),
  };
}

/** A spec that no version of the limiter takes. */
export const badSpec = {
  domain: 'shop',
  descriptors: [{ key: 'k', rateLimit: { unit: 'Fortnight', requestsPerUnit: 1 } }],
};
