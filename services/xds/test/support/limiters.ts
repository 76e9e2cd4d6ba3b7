import type { Client } from '../../src/ads/clients.ts';
import type { CommonSnapshot, SnapshotResource } from '../../src/catalog/snapshot.ts';

/** A limiter that has acknowledged nothing by default. */
export function makeLimiter(id: string, given: Partial<Client> = {}): Client {
  return {
    id,
    nodeId: `limiter-${id}`,
    identity: '',
    peer: '127.0.0.1:1',
    protocol: 'sotw',
    connectedMs: 0,
    limiterClass: undefined,
    reportsMatches: false,
    names: undefined,
    accepted: undefined,
    acceptedVersion: undefined,
    rejection: undefined,
    ...given,
  };
}

/** A set in which every domain has this version. */
export const versions = (set: Readonly<Record<string, string>>): ReadonlyMap<string, string> =>
  new Map(Object.entries(set));

/** A NACK of such a set. */
export function makeRejection(resources: ReadonlyMap<string, string>, message: string): Client['rejection'] {
  return { resources, snapshotVersion: 's', message, atMs: 0 };
}

/** A snapshot of that version, in which every domain has this version. */
export function makeSnapshot(version: string, set: Readonly<Record<string, string>>): CommonSnapshot {
  const resources = Object.entries(set).map(([name, of]): [string, SnapshotResource] => [
    name,
    { name, version: of, any: new Uint8Array() },
  ]);
  return { version, resources: new Map(resources), classes: new Map() };
}
