import { once } from 'node:events';
import {
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import type { BackoffOptions } from '@tollgate/kit/backoff';
import { readBody } from '@tollgate/kit/body';
import { hasStatus, parseApiError } from './errors.ts';
import type { KubeResource, ObjectName } from './resources.ts';

/** How long a call may take. */
export interface CallLimits {
  /** Default 30000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** One call of the API server. */
interface ApiRequest extends CallLimits {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Such as `/apis/ratelimit.tollgate.dev/v1alpha1/ratelimitconfigs`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
}

interface WatchRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** The connection is closed when nothing arrives for this time. */
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
}

type Call = Omit<ApiRequest, keyof CallLimits> & Partial<Pick<WatchRequest, 'idleTimeoutMs'>>;

/** Delays after failed calls. */
export const apiBackoff: BackoffOptions = { initialMs: 500, maxMs: 30_000, jitter: 1 };

const defaultTimeoutMs = 30_000;

/**
 * Bound of one response. A page of 500 objects is normally 1 MB, but 750 MB with objects of the
 * largest size in etcd: then the list is read with smaller pages.
 */
const defaultMaxBodyBytes = 64 * 1024 * 1024;

/** Bound of one watch event: an object of the largest size in etcd, plus managedFields and JSON. */
const maxLineBytes = 16 * 1024 * 1024;

/** TCP keepalive, which detects lost peers on idle connections. */
const keepAliveProbeMs = 30_000;

/** Status writes come in bursts that a few connections serve. */
const maxIdleSockets = 8;

/**
 * A client of the current cluster of a kubeconfig.
 *
 * The library loads and refreshes the credentials (token files, exec plugins, OIDC, client
 * certificates, proxies); calls use `node:https`. The library's own calls create a connection pool
 * each (undici 8), which costs a TLS handshake per status write, and its Watch skips lines that it
 * cannot parse and closes watches that are idle for 30 s. Here one agent keeps connections;
 * certificates are part of its pool key, so that connections of a replaced certificate are not
 * reused.
 */
export class ApiClient {
  /** The URL of the server. */
  readonly server: string;
  readonly #config: KubeConfig;
  readonly #maxBodyBytes: number;
  readonly #isSecure: boolean;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #closing = new AbortController();

  constructor(
    config: KubeConfig,
    { maxBodyBytes = defaultMaxBodyBytes }: { readonly maxBodyBytes?: number } = {},
  ) {
    const cluster = config.getCurrentCluster();
    if (cluster === null) throw new TypeError('the kubeconfig has no current cluster');
    this.#config = config;
    this.#maxBodyBytes = maxBodyBytes;
    this.server = cluster.server.replace(/\/+$/, '');
    this.#isSecure = this.server.startsWith('https:');
    const options = { keepAlive: true, keepAliveMsecs: keepAliveProbeMs, maxFreeSockets: maxIdleSockets };
    this.#agent = this.#isSecure ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /** Resolves with the JSON of a 2xx response. Rejects with an ApiError, or a network error. */
  async send({ timeoutMs = defaultTimeoutMs, signal, ...call }: ApiRequest): Promise<unknown> {
    const timeout = AbortSignal.timeout(Math.ceil(timeoutMs));
    const signals = [timeout, this.#closing.signal, ...(signal === undefined ? [] : [signal])];
    try {
      const response = await this.#open(call, AbortSignal.any(signals));
      return JSON.parse(await this.#readText(response));
    } catch (error) {
      if (!timeout.aborted || signal?.aborted === true || this.#closing.signal.aborted) throw error;
      throw new Error(`the API server did not respond within ${timeoutMs} ms`, { cause: error });
    }
  }

  /** Resolves when the response is a success. Its body is ignored. */
  async probe(path: string, { timeoutMs, signal }: Required<CallLimits>): Promise<void> {
    const limit = AbortSignal.any([AbortSignal.timeout(timeoutMs), this.#closing.signal, signal]);
    await this.#readText(await this.#open({ method: 'GET', path }, limit));
  }

  /** Undefined when the object does not exist. */
  async get(resource: KubeResource, name: ObjectName, limits: CallLimits): Promise<unknown> {
    try {
      return await this.send({ method: 'GET', path: objectPath(resource, name), ...limits });
    } catch (error) {
      if (hasStatus(error, 404)) return undefined;
      throw error;
    }
  }

  /** Rejects with an ApiError 409 when the object exists. */
  create(
    resource: KubeResource,
    object: { readonly metadata: ObjectName; readonly [field: string]: unknown },
    limits: CallLimits,
  ): Promise<unknown> {
    const path = collectionPath(resource, object.metadata.namespace);
    const body = { apiVersion: resource.apiVersion, kind: resource.kind, ...object };
    return this.send({ method: 'POST', path, body, ...limits });
  }

  /** Rejects with an ApiError 409 when the object has another resourceVersion than the body. */
  mergePatch(
    resource: KubeResource,
    name: ObjectName,
    { body, ...limits }: CallLimits & { readonly body: unknown },
  ): Promise<unknown> {
    const contentType = 'application/merge-patch+json';
    return this.send({ method: 'PATCH', path: objectPath(resource, name), contentType, body, ...limits });
  }

  /** Resolves with the lines once the server has accepted the watch. Both reject as `send` does. */
  async watch({ path, query, idleTimeoutMs, signal }: WatchRequest): Promise<AsyncIterable<string>> {
    const call: Call = { method: 'GET', path, idleTimeoutMs, ...(query !== undefined && { query }) };
    const response = await this.#open(call, AbortSignal.any([this.#closing.signal, signal]));
    return readLines(response, maxLineBytes);
  }

  /** Aborts all calls. Idempotent. */
  close(): void {
    this.#closing.abort(new Error('the API client is closed'));
    this.#agent.destroy();
  }

  async #open(call: Call, signal: AbortSignal): Promise<IncomingMessage> {
    signal.throwIfAborted();
    // An exec plugin may hang, and takes no signal.
    const options = await rejectOnAbort(this.#authenticate(), signal);
    const url = `${this.server}${call.path}?${new URLSearchParams(call.query)}`;
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const request = (this.#isSecure ? requestHttps : requestHttp)(url, {
      ...options,
      method: call.method,
      signal,
      headers: {
        ...options.headers,
        accept: 'application/json',
        'user-agent': 'tollgate-xds',
        ...(body !== undefined && {
          'content-type': call.contentType ?? 'application/json',
          'content-length': Buffer.byteLength(body),
        }),
      },
    });
    let response: IncomingMessage | undefined;
    const { idleTimeoutMs } = call;
    if (idleTimeoutMs !== undefined) {
      // A reader of the response gets the error only from the response.
      request.setTimeout(idleTimeoutMs, () => (response ?? request).destroy(idleError(idleTimeoutMs)));
    }
    // Once there is a response it reports errors; an unhandled error of the request would end the
    // process.
    request.on('error', () => undefined);
    request.end(body);
    // node:events does not type the arguments of an event.
    [response] = (await once(request, 'response')) as [IncomingMessage];
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw parseApiError(status, await this.#readText(response), parseRetryAfterMs(response));
  }

  async #readText(response: IncomingMessage): Promise<string> {
    const maxBytes = this.#maxBodyBytes;
    const tooLarge = () => new ResponseTooLarge(`the API server's response exceeds ${maxBytes} bytes`);
    return (await readBody(response, maxBytes, tooLarge)).toString();
  }

  /** Evaluated for each call, because tokens expire and certificates are replaced. */
  async #authenticate(): Promise<RequestOptions> {
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options);
    // The library's agent keeps no connections, and is needed only for a proxy.
    if (!this.#config.getCurrentCluster()?.proxyUrl) options.agent = this.#agent;
    return options;
  }
}

/** Path of all objects of a kind, in one namespace or, when that is empty, in all. */
export function collectionPath({ group, apiVersion, plural }: KubeResource, namespace: string): string {
  const scope = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `/${group === '' ? 'api' : 'apis'}/${apiVersion}${scope}/${plural}`;
}

export function objectPath(resource: KubeResource, { namespace, name }: ObjectName): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}

/** @throws Error that names `what` unless the value is a JSON object. */
export function requireRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`the API server sent an invalid ${what}`);
  // Parsed JSON: an object that is not an array has string keys and unknown values.
  return value as Readonly<Record<string, unknown>>;
}

/** A response was aborted because it exceeds the bound of the client. */
export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';
}

/** The error has the code of a lost connection, so that the watch is resumed. */
function idleError(idleMs: number): Error {
  return Object.assign(new Error(`no data received for ${idleMs} ms`), { code: 'ETIMEDOUT' });
}

/** Seconds, as the API server's flow control sends it. */
function parseRetryAfterMs(response: IncomingMessage): number {
  const seconds = Number(response.headers['retry-after'] ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0;
}

function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener('abort', abort));
}

/**
 * Splits a stream into lines of UTF-8 without their ends, with backpressure.
 *
 * @throws Error for a line of more than `maxBytes`, so that no more is buffered.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array): void => {
    size += part.length;
    if (size > maxBytes) throw new Error(`a line exceeds ${maxBytes} bytes`);
    parts.push(part);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      const line = Buffer.concat(parts, size).toString('utf8');
      parts = [];
      size = 0;
      yield line;
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  // An incomplete last line is dropped: the connection was cut in the middle of it.
}

const newline = 0x0a;

export interface TokenBucketOptions {
  readonly ratePerSecond: number;
  readonly burst: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly sleep: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Delays callers to a rate, first in, first out. */
export class TokenBucket {
  readonly #options: TokenBucketOptions;
  /** When the last token that was handed out is earned. */
  #earnedMs = Number.NEGATIVE_INFINITY;

  constructor(options: TokenBucketOptions) {
    this.#options = options;
  }

  /** Rejects when the signal aborts. */
  async take(signal: AbortSignal): Promise<void> {
    const { ratePerSecond, burst, now, sleep } = this.#options;
    const intervalMs = 1_000 / ratePerSecond;
    const nowMs = now();
    this.#earnedMs = Math.max(this.#earnedMs, nowMs - burst * intervalMs) + intervalMs;
    if (this.#earnedMs > nowMs) await sleep(this.#earnedMs - nowMs, { signal });
  }
}
