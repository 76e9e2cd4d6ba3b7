import type { ApiClient } from './api-client.ts';
import { hasStatus } from './api-error.ts';
import { requireRecord } from './kube-object.ts';
import { apiVersionOf, collectionPath, leases, type ObjectName, objectPath } from './kube-resource.ts';

/** What a Lease says. */
export interface LeaseRecord {
  /** Empty when nobody holds it. */
  readonly holder: string;
  /** How long the holder may be silent. */
  readonly durationMs: number;
  readonly acquiredAt: string;
  readonly renewedAt: string;
  /** How often it has changed hands. */
  readonly transitions: number;
}

/** A Lease as the API server has it. */
export interface Lease {
  readonly record: LeaseRecord;
  /** Guards the next write: whoever read an older one writes nothing. */
  readonly manifest: Readonly<Record<string, unknown>>;
}

/** How long one call may take, and what ends it early. */
export interface CallLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Reads a Lease; undefined when there is none. */
export async function readLease(
  api: ApiClient,
  name: ObjectName,
  limits: CallLimits,
): Promise<Lease | undefined> {
  try {
    return leaseOf(await api.send({ method: 'GET', path: objectPath(leases, name), ...limits }));
  } catch (error) {
    if (hasStatus(error, 404)) return undefined;
    throw error;
  }
}

/** Makes a Lease. Rejects with an ApiError 409 when somebody else was faster. */
export async function createLease(
  api: ApiClient,
  { namespace, name }: ObjectName,
  record: LeaseRecord,
  limits: CallLimits,
): Promise<Lease> {
  const manifest = { apiVersion: apiVersionOf(leases), kind: leases.kind, metadata: { namespace, name } };
  const body = { ...manifest, spec: specOf(record) };
  return leaseOf(
    await api.send({ method: 'POST', path: collectionPath(leases, namespace), body, ...limits }),
  );
}

/** Writes a Lease that has not changed since it was read. Rejects with an ApiError 409 when it has. */
export async function replaceLease(
  api: ApiClient,
  name: ObjectName,
  { lease, record }: { readonly lease: Lease; readonly record: LeaseRecord },
  limits: CallLimits,
): Promise<Lease> {
  // What others have written into the specification is left as it is.
  const before = requireRecord(lease.manifest.spec ?? {}, 'spec of a Lease');
  const body = { ...lease.manifest, spec: { ...before, ...specOf(record) } };
  return leaseOf(await api.send({ method: 'PUT', path: objectPath(leases, name), body, ...limits }));
}

/** A time as `metav1.MicroTime` spells it. */
export function microTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace('Z', '000Z');
}

function specOf(record: LeaseRecord): Record<string, unknown> {
  return {
    holderIdentity: record.holder,
    // Whole seconds, and more rather than less: others must not take over early.
    leaseDurationSeconds: Math.max(1, Math.ceil(record.durationMs / 1_000)),
    acquireTime: record.acquiredAt,
    renewTime: record.renewedAt,
    leaseTransitions: record.transitions,
  };
}

function leaseOf(value: unknown): Lease {
  const manifest = requireRecord(value, 'a Lease');
  const spec = requireRecord(manifest.spec ?? {}, 'spec of a Lease');
  const text = (field: unknown): string => (typeof field === 'string' ? field : '');
  const number = (field: unknown): number => (typeof field === 'number' ? field : 0);
  return {
    manifest,
    record: {
      holder: text(spec.holderIdentity),
      durationMs: number(spec.leaseDurationSeconds) * 1_000,
      acquiredAt: text(spec.acquireTime),
      renewedAt: text(spec.renewTime),
      transitions: number(spec.leaseTransitions),
    },
  };
}
