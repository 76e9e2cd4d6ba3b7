import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema, anyPack } from '@bufbuild/protobuf/wkt';
import { RateLimitConfigSchema, RateLimitUnit } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import type { CommonSnapshot, SnapshotResource } from '../../src/catalog/snapshot.ts';

/**
 * A snapshot of domains with one limit each: requests a minute by domain. Versions follow from the
 * content.
 */
export function testSnapshot(limits: Readonly<Record<string, number>>): CommonSnapshot {
  const resources = Object.entries(limits).map(([name, limit]) => testResource(name, limit));
  resources.sort((one, other) => (one.name < other.name ? -1 : 1));
  const version = `v:${resources.map((resource) => `${resource.name}=${resource.version}`).join(',')}`;
  return {
    version,
    resources: new Map(resources.map((resource) => [resource.name, resource])),
    classes: new Map(),
  };
}

function testResource(name: string, requestsPerUnit: number): SnapshotResource {
  const config = create(RateLimitConfigSchema, {
    name,
    domain: name,
    descriptors: [{ key: 'user', rateLimit: { unit: RateLimitUnit.MINUTE, requestsPerUnit } }],
  });
  const any = anyPack(RateLimitConfigSchema, config);
  return { name, version: String(requestsPerUnit), any: toBinary(AnySchema, any) };
}

/** Both in one; no resource of one has the name of one of the other. */
export function combined(one: CommonSnapshot, other: CommonSnapshot): CommonSnapshot {
  return {
    version: `${one.version},${other.version}`,
    resources: new Map([...one.resources, ...other.resources]),
    classes: new Map(),
  };
}

/** A snapshot of one resource of about this many bytes, which are no rules. */
export function largeSnapshot(bytes: number, version = '1'): CommonSnapshot {
  const any = toBinary(AnySchema, create(AnySchema, { typeUrl: 'large', value: new Uint8Array(bytes) }));
  return {
    version: `v:large=${version}`,
    resources: new Map([['large', { name: 'large', version, any }]]),
    classes: new Map(),
  };
}
