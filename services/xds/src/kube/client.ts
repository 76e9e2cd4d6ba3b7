import { once } from 'node:events';
import {
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { apiErrorFrom } from './errors.ts';

/**
 * Cuts a stream into its lines, as UTF-8 without their ends. The stream is read only as fast as the lines are taken.
 *
 * @throws Error for a line of more than `maxBytes`, so that no more than that is ever held.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array): void => {
    size += part.length;
    if (size > maxBytes) throw new Error(`a line of more than ${maxBytes} bytes`);
    parts.push(part);
  };
  const take = (): string => {
    const line = Buffer.concat(parts, size).toString('utf8');
    parts = [];
    size = 0;
    return line;
  };

  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  // What the connection was cut in the middle of is no line; a stream that ends in order ends with a line's end.
}

const newline = 0x0a;

/** One call of the API server. */
interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Such as `/apis/ratelimit.tollgate.dev/v1alpha1/ratelimitconfigs`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  /** Default 30000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** A watch: a response without an end. */
interface ApiWatchRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** The connection is cut when nothing arrives for so long, from its opening on. */
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
}

/** Speaks to one API server. */
export interface ApiClient {
  /** The server's URL, for logs. */
  readonly server: string;
  /** Resolves with the decoded JSON of a 2xx. Rejects with an ApiError for other answers, with the network's error otherwise. */
  send(request: ApiRequest): Promise<unknown>;
  /** Resolves, once the server has accepted the watch, with its lines. Both reject as `send` does. */
  watch(request: ApiWatchRequest): Promise<AsyncIterable<string>>;
  /** Ends all calls that are going on. Idempotent. */
  close(): void;
}

const defaultTimeoutMs = 30_000;

/**
 * Most bytes of one answer. A page of 500 objects has 1 MB as a rule, one of 500 objects of the largest size that etcd
 * takes would have 750; whoever lists asks for fewer objects then.
 */
const defaultMaxBodyBytes = 64 * 1024 * 1024;

/** Most bytes of one event: an object of etcd's largest size, with what managedFields and JSON add to it. */
const maxLineBytes = 16 * 1024 * 1024;

/** TCP's own sign of life, so that a peer that vanished is noticed also where nobody writes. */
const keepAliveProbeMs = 30_000;

/** Idle connections that are kept: status writes come in bursts, and a burst is served by a few. */
const maxIdleSockets = 8;

/**
 * Makes a client of the cluster that `config` has chosen.
 *
 * The library finds and refreshes the credentials (token files, exec plugins, OIDC, client certificates, proxies);
 * the calls are made with `node:https`. The library's own calls and its Watch make a new connection pool for each call
 * (of undici 8), which means a TLS handshake for each status written, and its Watch passes over lines that it cannot
 * read and cuts every watch that is quiet for 30 s. Here one agent keeps connections; as their certificates are part of
 * what tells connections apart, one made with an old certificate is not used for a call with a new one.
 */
export function createApiClient(
  config: KubeConfig,
  { maxBodyBytes = defaultMaxBodyBytes }: { readonly maxBodyBytes?: number } = {},
): ApiClient {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new TypeError('a kubeconfig without a current cluster');
  const base = cluster.server.replace(/\/+$/, '');
  const secure = base.startsWith('https:');
  const closing = new AbortController();
  const agentOptions = { keepAlive: true, keepAliveMsecs: keepAliveProbeMs, maxFreeSockets: maxIdleSockets };
  const agent = secure ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions);

  /** Asked for each call: a token expires, a certificate is replaced. */
  async function authenticated(): Promise<RequestOptions> {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    // The library's agent is needed only where it reaches the server through a proxy; it keeps no connections.
    if (!cluster?.proxyUrl) options.agent = agent;
    return options;
  }

  async function open(call: Call, signal: AbortSignal): Promise<IncomingMessage> {
    signal.throwIfAborted();
    // An exec plugin may hang, and knows of no signal.
    const options = await unlessAborted(authenticated(), signal);
    const url = `${base}${call.path}?${new URLSearchParams(call.query)}`;
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const request = (secure ? requestHttps : requestHttp)(url, {
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
      // Whoever reads the response hears the reason only from the response.
      request.setTimeout(idleTimeoutMs, () => (response ?? request).destroy(idleError(idleTimeoutMs)));
    }
    // Once there is a response it reports a broken connection; the request's own report must not end the process.
    request.on('error', () => undefined);
    request.end(body);
    // node:events cannot know which event brings what.
    [response] = (await once(request, 'response')) as [IncomingMessage];
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw apiErrorFrom(status, await readText(response, maxBodyBytes), retryAfterMs(response));
  }

  return {
    server: base,

    async send({ timeoutMs = defaultTimeoutMs, signal, ...call }) {
      const late = AbortSignal.timeout(Math.ceil(timeoutMs));
      const signals = [late, closing.signal, ...(signal === undefined ? [] : [signal])];
      try {
        const text = await readText(await open(call, AbortSignal.any(signals)), maxBodyBytes);
        return JSON.parse(text);
      } catch (error) {
        if (!late.aborted || signal?.aborted === true || closing.signal.aborted) throw error;
        throw new Error(`the API server did not answer within ${timeoutMs} ms`, { cause: error });
      }
    },

    async watch({ path, query, idleTimeoutMs, signal }) {
      const call: Call = { method: 'GET', path, idleTimeoutMs, ...(query !== undefined && { query }) };
      const response = await open(call, AbortSignal.any([closing.signal, signal]));
      return readLines(response, maxLineBytes);
    },

    close() {
      closing.abort(new Error('the client of the API server is closed'));
      agent.destroy();
    },
  };
}

/** An answer was given up because it did not end within the bound of the client. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

interface Call extends Pick<ApiRequest, 'method' | 'path' | 'query' | 'body' | 'contentType'> {
  readonly idleTimeoutMs?: number;
}

async function readText(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    // A response without an encoding yields Buffers.
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > maxBytes) throw new AnswerTooLarge(`the API server's answer has more than ${maxBytes} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks, size).toString('utf8');
}

/** With the code of a connection that is lost, which is what it means. */
function idleError(idleMs: number): Error {
  return Object.assign(new Error(`nothing arrived for ${idleMs} ms`), { code: 'ETIMEDOUT' });
}

/** In seconds, as the API server's flow control sends it. */
function retryAfterMs(response: IncomingMessage): number {
  const seconds = Number(response.headers['retry-after'] ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0;
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener('abort', abort));
}

/** How fast something may be done. */
export interface TokenBucketOptions {
  readonly ratePerSecond: number;
  /** How many may be done at once after a rest. */
  readonly burst: number;
}

/** Time, as a bucket sees it. */
export interface TokenBucketDeps {
  /** A clock in milliseconds that does not go back. */
  readonly now: () => number;
  readonly sleep: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Makes callers wait so that they keep to a rate; they go in the order in which they came. */
export interface TokenBucket {
  /** Resolves when it is the caller's turn. Rejects when the signal aborts. */
  take(signal: AbortSignal): Promise<void>;
}

/** Makes a full bucket. */
export function createTokenBucket(
  { ratePerSecond, burst }: TokenBucketOptions,
  deps: TokenBucketDeps,
): TokenBucket {
  const intervalMs = 1_000 / ratePerSecond;
  /** When the last token that was given out has been earned. */
  let earnedMs = Number.NEGATIVE_INFINITY;
  return {
    async take(signal) {
      const nowMs = deps.now();
      earnedMs = Math.max(earnedMs, nowMs - burst * intervalMs) + intervalMs;
      if (earnedMs > nowMs) await deps.sleep(earnedMs - nowMs, { signal });
    },
  };
}
