import { gunzipSync, gzipSync } from 'node:zlib';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { HeldObject, HoldStore, StoredHold } from '../catalog/source.ts';
import { toTexts } from '../catalog/stored-version.ts';
import { type ApiClient, objectPath } from '../kube/client.ts';
import { describeApiError, hasStatus } from '../kube/errors.ts';
import type { Leadership } from '../kube/lease.ts';
import { Reflector } from '../kube/reflector.ts';
import { configMaps, type ObjectName } from '../kube/resources.ts';

export interface HeldConfigMapOptions extends ObjectName {
  readonly api: ApiClient;
  readonly logger: Logger;
  readonly leadership: Leadership;
  /** Delay of a write by a replica that is not the leader. Default 2000. */
  readonly followerDelayMs?: number;
}

/** An annotation of the ConfigMap. */
const annotation = 'ratelimit.tollgate.dev/allow-deletions';

/** Bytes of compressed rules: the API server accepts ConfigMaps of 1 MiB. */
const maxBytes = 900_000;

const maxUncompressedBytes = 100_000_000;

const timeoutMs = 5_000;
const retryMs = 2_000;

/** The start waits this long for the ConfigMap, which only matters after a deletion storm. */
const maxStartMs = 5_000;

/**
 * Stores deleted objects whose rules stay in force in a ConfigMap, so that they stay in force after
 * restarts, and all replicas agree: with the CRD, their objects are gone. The leader writes.
 * Another replica creates the ConfigMap when it holds deletions alone. An annotation lets the
 * deletions through, in all replicas.
 */
export class HeldConfigMap implements HoldStore {
  readonly #options: HeldConfigMapOptions;
  readonly #reflector: Reflector;
  readonly #closing = new AbortController();
  #stored: StoredHold | undefined;
  /** The stored content, as it was written. */
  #content: string | undefined;
  #wanted: readonly HeldObject[] | undefined;
  #writing: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #problem: string | undefined;
  #stopListening: () => void = () => undefined;

  constructor(options: HeldConfigMapOptions) {
    const { api, logger, namespace, name } = options;
    this.#options = options;
    this.#reflector = new Reflector({
      api,
      logger: logger.child({ configMap: `${namespace}/${name}` }),
      resource: configMaps,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      resyncMs: 600_000,
    });
  }

  get command(): string {
    const { namespace, name } = this.#options;
    return `kubectl -n ${namespace} annotate configmap ${name} ${annotation}=true`;
  }

  async start(onChange: (stored: StoredHold) => void): Promise<void> {
    this.#reflector.start((event) => {
      const object =
        event.type === 'replaced' ? event.objects[0] : 'object' in event ? event.object : undefined;
      this.#read(object?.manifest);
      onChange(this.#stored ?? { isAllowed: false, objects: [] });
    });
    this.#stopListening = this.#options.leadership.onChange(() => this.#write());
    const late = AbortSignal.timeout(maxStartMs);
    await Promise.race([
      this.#reflector.synced,
      new Promise<void>((resolve) => late.addEventListener('abort', () => resolve())),
    ]);
  }

  put(objects: readonly HeldObject[]): void {
    this.#wanted = objects;
    const { leadership, followerDelayMs = retryMs } = this.#options;
    // The leader writes first, as it usually holds the same deletions.
    if (leadership.isLeader()) this.#write();
    else this.#writeAfter(followerDelayMs);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    clearTimeout(this.#retry);
    this.#stopListening();
    await Promise.all([this.#reflector.close(), this.#writing]);
  }

  #read(manifest: Readonly<Record<string, unknown>> | undefined): void {
    const text = getField(getField(manifest, 'binaryData'), 'objects');
    this.#content = typeof text === 'string' ? text : undefined;
    if (this.#content === undefined) {
      this.#stored = undefined;
      return;
    }
    const isAllowed =
      getField(getField(getField(manifest, 'metadata'), 'annotations'), annotation) === 'true';
    try {
      this.#stored = { isAllowed, objects: parse(this.#content) };
    } catch (error) {
      const reason = getErrorMessage(error);
      this.#options.logger.warn({ reason }, 'ignored a damaged copy of held deletions');
      this.#stored = { isAllowed, objects: [] };
    }
  }

  #mayWrite(): boolean {
    const isMissing = this.#content === undefined && (this.#wanted?.length ?? 0) > 0;
    return this.#options.leadership.isLeader() || isMissing;
  }

  #writeAfter(delayMs: number): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#write(), delayMs).unref();
  }

  #write(): void {
    clearTimeout(this.#retry);
    this.#writing ??= this.#writeWanted().finally(() => {
      this.#writing = undefined;
    });
  }

  async #writeWanted(): Promise<void> {
    const { namespace, logger } = this.#options;
    while (this.#wanted !== undefined && this.#mayWrite()) {
      const wanted = this.#wanted;
      try {
        await this.#store(wanted);
        this.#problem = undefined;
        if (this.#wanted === wanted) this.#wanted = undefined;
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        const verb = 'create, patch and delete';
        const reason = describeApiError(error, { verb, resource: configMaps, namespace });
        if (reason !== this.#problem) logger.warn({ reason }, 'cannot store held deletions, retrying');
        this.#problem = reason;
        this.#writeAfter(retryMs);
        return;
      }
    }
  }

  async #store(objects: readonly HeldObject[]): Promise<void> {
    const { api, namespace, name, logger, leadership } = this.#options;
    const limits = { timeoutMs, signal: this.#closing.signal };
    if (objects.length === 0) {
      if (this.#content === undefined) return;
      await api
        .send({ method: 'DELETE', path: objectPath(configMaps, { namespace, name }), ...limits })
        .catch(ignoreMissing);
      this.#content = undefined;
      return;
    }
    const content = format(objects);
    if (content === this.#content) return;
    if (Buffer.byteLength(content, 'base64') > maxBytes) {
      logger.warn(
        { objects: objects.length },
        'held deletions are too large to be stored, a restart lifts them',
      );
      return;
    }
    const binaryData = { objects: content };
    const create = () => api.create(configMaps, { metadata: { namespace, name }, binaryData }, limits);
    // A replica that is not the leader must not overwrite what the leader has stored meanwhile.
    if (!leadership.isLeader()) await create();
    else
      await api
        .mergePatch(configMaps, { namespace, name }, { body: { binaryData }, ...limits })
        .catch((error: unknown) => {
          ignoreMissing(error);
          return create();
        });
    this.#content = content;
  }
}

function ignoreMissing(error: unknown): void {
  if (!hasStatus(error, 404)) throw error;
}

function format(objects: readonly HeldObject[]): string {
  return gzipSync(JSON.stringify(objects)).toString('base64');
}

/** @throws Error for anything that this class has not written. */
function parse(content: string): readonly HeldObject[] {
  const json = gunzipSync(Buffer.from(content, 'base64'), { maxOutputLength: maxUncompressedBytes });
  const value: unknown = JSON.parse(json.toString());
  if (!Array.isArray(value)) throw new Error('is not a list');
  return value.map(parseObject);
}

function parseObject(value: unknown): HeldObject {
  const read = (key: string): string => {
    const field = getField(value, key);
    if (typeof field !== 'string') throw new Error(`${key} is missing`);
    return field;
  };
  const [generation, createdMs] = [getField(value, 'generation'), getField(value, 'createdMs')];
  if (typeof generation !== 'number' || typeof createdMs !== 'number')
    throw new Error('generation or createdMs is missing');
  const allowedHosts = toTexts(getField(value, 'allowedHosts'));
  const identity = { id: read('id'), uid: read('uid'), generation, createdMs };
  return { ...identity, spec: getField(value, 'spec'), ...(allowedHosts.length > 0 && { allowedHosts }) };
}

function getField(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
