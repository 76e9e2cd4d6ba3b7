import { monotonicNow, sleepFor } from '@tollgate/kit/time';
import type { ConfigObject } from '../catalog/source.ts';
import type { Context } from '../context.ts';
import { type ApiClient, objectPath, requireRecord, TokenBucket } from '../kube/client.ts';
import { ApiError, hasStatus } from '../kube/errors.ts';
import type { Leadership } from '../kube/lease.ts';
import type { KubeResource } from '../kube/resources.ts';
import type { StatusPutOptions } from './reporter.ts';
import { WriteLoop, type WriteTiming } from './write-loop.ts';
import type { QueuedWrite } from './write-queue.ts';

/** Objects of one kind, and their status from what is known of them. */
export interface StatusKind<Wanted extends object, Manifest extends object> {
  readonly resource: KubeResource;
  /** `namespace/name`. */
  readonly idOf: (wanted: Wanted) => string;
  /** Whether this is known of the object as it is now; otherwise the status of that follows. */
  readonly isOf: (wanted: Wanted, object: ConfigObject) => boolean;
  /**
   * Whether `status`, that of the object, says more: another replica has seen that clients have
   * this version, while clients still reconnect to this one.
   */
  readonly isBehind: (wanted: Wanted, status: unknown) => boolean;
  /** Whether the status of an edit is the last one: no client has to answer any more. */
  readonly isLast: (wanted: Wanted) => boolean;
  readonly toManifest: (wanted: Wanted, present: PresentObject) => Manifest;
  /** Whether the object has this status already; fields of other writers are ignored. */
  readonly hasManifest: (current: unknown, manifest: Manifest) => boolean;
}

/** An object as it is, from which a new status keeps some parts. */
interface PresentObject {
  readonly spec: unknown;
  readonly status: unknown;
  readonly nowMs: number;
  /** Whether the CRD has the field `lastValid`, without which no status may have it. */
  readonly storesLastValid: boolean;
}

export interface KubernetesStatusWriterOptions<Wanted extends object, Manifest extends object>
  extends WriteTiming {
  readonly kind: StatusKind<Wanted, Manifest>;
  readonly api: ApiClient;
  /** The source: a status that its object has already is not written. */
  readonly objects: { get(id: string): ConfigObject | undefined };
  readonly leadership: Leadership;
  /** Changes are collected for this time. */
  readonly debounceMs: number;
  /** Rate after the burst. Default 50: 10,000 objects take three minutes. */
  readonly writesPerSecond?: number;
  /** Default 100. */
  readonly burst?: number;
}

/** Owner of the fields in server-side apply. */
const fieldManager = 'tollgate-xds';

/** Shorter than lease duration minus renew deadline: writes of two leaders do not overlap. */
const writeTimeoutMs = 5_000;

/** Delay after a conflict: the source has to deliver the new version of the object. */
const conflictDelayMs = 10;

/** A version of an object, and its status. */
interface LiveObject {
  readonly spec: unknown;
  readonly status: unknown;
  readonly resourceVersion: string;
}

/**
 * Writes the status subresource by server-side apply. Only the leader writes, only what differs
 * from the status of the object, and only the latest of several changes. Each write comes back as a
 * MODIFIED event with the same generation.
 */
export class KubernetesStatusWriter<Wanted extends object, Manifest extends object> {
  readonly #context: Context;
  readonly #options: KubernetesStatusWriterOptions<Wanted, Manifest>;
  readonly #bucket: TokenBucket;
  readonly #loop: WriteLoop;
  readonly #wanted = new Map<string, Wanted>();
  /** Objects returned by the API server that the source has not delivered yet. */
  readonly #written = new WeakMap<ConfigObject, LiveObject>();
  /** Objects of which the API server has a version that the source has not delivered yet. */
  readonly #outdated = new WeakSet<ConfigObject>();
  /** False while the CRD is older than this service. */
  #storesLastValid: boolean = true;
  #hasWarnedOfCrd: boolean = false;

  constructor(context: Context, options: KubernetesStatusWriterOptions<Wanted, Manifest>) {
    const { writesPerSecond: ratePerSecond = 50, burst = 100, sleep = sleepFor } = options;
    this.#context = context;
    this.#options = options;
    this.#bucket = new TokenBucket({ ratePerSecond, burst, now: monotonicNow, sleep });
    this.#loop = new WriteLoop(context, {
      ...options,
      resource: options.kind.resource,
      all: () => {
        // The CRD may have been upgraded.
        this.#storesLastValid = true;
        return this.#wanted.keys();
      },
      write: (next) => this.#write(next),
    });
  }

  put(wanted: Wanted, { isEdit }: StatusPutOptions = { isEdit: false }): void {
    const { kind, leadership, debounceMs } = this.#options;
    const id = kind.idOf(wanted);
    this.#wanted.set(id, wanted);
    // A replica that becomes the leader checks all of them.
    if (!leadership.isLeader()) return;
    // Nothing is collected for the last status of an edit.
    this.#loop.enqueue(id, { isEdit, delayMs: isEdit && kind.isLast(wanted) ? 0 : debounceMs });
  }

  forget(id: string): void {
    this.#wanted.delete(id);
    this.#loop.forget(id);
  }

  start(): void {
    this.#loop.start();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  async #write({ id, isEdit }: QueuedWrite): Promise<void> {
    const { kind, objects, leadership } = this.#options;
    const wanted = this.#wanted.get(id);
    const object = objects.get(id);
    if (wanted === undefined || object === undefined || !kind.isOf(wanted, object)) return;
    const retry = () => this.#loop.enqueue(id, { isEdit, delayMs: conflictDelayMs });
    if (this.#outdated.has(object)) {
      retry();
      return;
    }
    const current = this.#written.get(object) ?? readLiveObject(object.manifest);
    if (kind.isBehind(wanted, current.status)) return;
    const present = { ...current, nowMs: this.#context.nowMs(), storesLastValid: this.#storesLastValid };
    const manifest = kind.toManifest(wanted, present);
    if (kind.hasManifest(current.status, manifest)) return;
    await this.#bucket.take(this.#loop.signal);
    if (!leadership.isLeader()) return;
    const { trace, metrics } = this.#context;
    const send = async (): Promise<void> => {
      const applied = await this.#apply(object, current.resourceVersion, manifest);
      this.#written.set(object, readLiveObject(applied));
    };
    try {
      const attributes = { 'k8s.namespace.name': object.namespace, 'tollgate.xds.object': object.name };
      await (trace === undefined ? send() : trace.write(wanted, attributes, send));
      metrics.statusWrites.inc({ result: 'written' });
    } catch (error) {
      if (isMissingField(error)) {
        this.#handleMissingField();
        retry();
        return;
      }
      if (!hasStatus(error, 409)) throw error;
      metrics.statusWrites.inc({ result: 'conflict' });
      this.#outdated.add(object);
      retry();
    }
  }

  /** Warns once. The field is tried again at the next check, because the CRD may be upgraded. */
  #handleMissingField(): void {
    this.#storesLastValid = false;
    if (this.#hasWarnedOfCrd) return;
    this.#hasWarnedOfCrd = true;
    const { plural } = this.#options.kind.resource;
    const reason = `the CRD has no status.lastValid: kubectl apply --server-side -f crds/${plural}.yaml`;
    this.#context.logger.warn({ reason }, 'last valid versions are not stored');
  }

  #apply({ namespace, name }: ConfigObject, resourceVersion: string, status: Manifest): Promise<unknown> {
    const { api, kind } = this.#options;
    const { resource } = kind;
    return api.send({
      method: 'PATCH',
      path: `${objectPath(resource, { namespace, name })}/status`,
      // Forced: a status taken over by another manager would be wrong from then on.
      query: { fieldManager, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: {
        apiVersion: resource.apiVersion,
        kind: resource.kind,
        // The version makes the API server refuse (409) when the object has changed or was created
        // again. It ignores the uid when a status is applied.
        metadata: { namespace, name, resourceVersion },
        status,
      },
      timeoutMs: writeTimeoutMs,
      signal: this.#loop.signal,
    });
  }
}

/** Server-side apply refuses fields that the schema does not declare. */
function isMissingField(error: unknown): boolean {
  return error instanceof ApiError && /lastValid: field not declared in schema/.test(error.message);
}

function readLiveObject(value: unknown): LiveObject {
  const { spec, status, metadata } = requireRecord(value, 'object');
  const { resourceVersion } = requireRecord(metadata, 'metadata');
  return { spec, status, resourceVersion: String(resourceVersion) };
}
