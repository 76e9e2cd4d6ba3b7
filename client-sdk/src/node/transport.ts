/// <reference lib="esnext.disposable" preserve="true" />

import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import { assertTimer } from '../timers.ts';
import { Agents } from './agents.ts';
import { bareHostname, type ProxySettings, parseProxy } from './proxy.ts';
import { loadTlsSettings } from './tls.ts';

/** A body for Node's requests, with the content type that `fetch` would set. */
interface NodeBody {
  readonly content: string | Uint8Array | Readable | undefined;
  readonly contentType: string | undefined;
}

/** Converts a body of `fetch`; text, forms and bytes are not copied. */
function toNodeBody(body: RequestInit['body']): NodeBody {
  if (body === undefined || body === null) return { content: undefined, contentType: undefined };
  if (typeof body === 'string') return { content: body, contentType: 'text/plain;charset=UTF-8' };
  if (body instanceof URLSearchParams) {
    return {
      content: body.toString(),
      contentType: 'application/x-www-form-urlencoded;charset=UTF-8',
    };
  }
  if (body instanceof Uint8Array) return { content: body, contentType: undefined };
  if (body instanceof ArrayBuffer) return { content: new Uint8Array(body), contentType: undefined };
  // Blobs, forms with files and streams.
  const written = new Response(body);
  return {
    content: written.body === null ? undefined : Readable.fromWeb(written.body),
    contentType: written.headers.get('content-type') ?? undefined,
  };
}

/** PEM text or bytes. */
export type Pem = string | Uint8Array;

/** Options of `nodeTransport`. */
export interface NodeTransportOptions {
  /**
   * The client's certificate with its chain, for mutual TLS. Sent to every https server that
   * requests one.
   */
  cert?: Pem;
  /** The private key of `cert`; may be encrypted. */
  key?: Pem;
  /** Password of an encrypted `key` (or `pfx`). */
  passphrase?: string;
  /** Certificate and key as PKCS #12, instead of `cert` and `key`. */
  pfx?: Uint8Array;
  /** Certificate authorities, instead of the built-in ones. */
  ca?: Pem | readonly Pem[];
  /** A file with certificate authorities, added to `ca`. */
  caFile?: string;
  /** A folder with certificate authorities (`.pem`, `.crt`, `.cer`), added to `ca`. */
  caPath?: string;
  /** Whether certificates of servers are verified. Default true; never disable it in production. */
  verify?: boolean;
  /**
   * `http://` or `https://` URL of a proxy. Its user and password are sent as Basic credentials to
   * the proxy only.
   */
  proxy?: string | URL;
  /**
   * Hosts that are connected to directly: `example.com` (and subdomains), `.example.com` (only
   * subdomains), `host:port`, `*`.
   */
  noProxy?: readonly string[];
  /**
   * Milliseconds to establish a connection, including proxy and TLS; 0 means no limit. Default
   * 10,000.
   */
  connectTimeoutMs?: number;
  /**
   * Milliseconds without data in either direction until a request fails; 0 means no limit. Default
   * 60,000.
   */
  idleTimeoutMs?: number;
  /** Maximum of connections per host; further requests wait. Default 64. */
  maxSockets?: number;
  /** Whether connections are reused. Default true. */
  keepAlive?: boolean;
}

const nodeTransportOptionNames: OptionNames<NodeTransportOptions> = {
  ...{ cert: 1, key: 1, passphrase: 1, pfx: 1, ca: 1 },
  ...{ caFile: 1, caPath: 1, verify: 1, proxy: 1, noProxy: 1 },
  ...{ connectTimeoutMs: 1, idleTimeoutMs: 1, maxSockets: 1, keepAlive: 1 },
};

/** A `fetch` for a Client that closes its connections. */
export interface NodeTransport {
  (url: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Closes idle connections and rejects new requests; requests in flight complete. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
}

/**
 * Makes a `fetch` on Node's http and https, for client certificates (mutual TLS), certificate
 * authorities, proxies and connect time-outs. Use it as a Client's `fetch`. It does not follow
 * redirects (the Client does), nor does it ask for compression.
 *
 * @throws ConfigurationError if certificates, keys or proxy are invalid, or a time is longer than
 * timers support.
 * @see RFC 8705 §2 https://www.rfc-editor.org/rfc/rfc8705#section-2
 */
export function nodeTransport(options: NodeTransportOptions = {}): NodeTransport {
  assertKnownOptions('nodeTransport', options, nodeTransportOptionNames);
  const { proxy: proxyUrl, noProxy, keepAlive = true, maxSockets = 64 } = options;
  const { connectTimeoutMs = 10_000, idleTimeoutMs = 60_000 } = options;
  assertTimer('connectTimeoutMs', connectTimeoutMs);
  assertTimer('idleTimeoutMs', idleTimeoutMs);
  const proxy = proxyUrl === undefined ? undefined : parseProxy(proxyUrl, noProxy);
  const agents = new Agents(
    { keepAlive, maxSockets },
    { tls: loadTlsSettings(options), connectTimeoutMs, ...(proxy !== undefined && { proxy }) },
  );
  let closed = false;

  async function send(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const { url, method, headers, body, signal } = readRequest(input, init);
    signal?.throwIfAborted();
    if (closed) throw fetchFailed(new Error('the transport is closed'));
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw fetchFailed(new Error(`${url.protocol} is not supported`));
    }
    if (body.contentType !== undefined && !headers.has('content-type')) {
      headers.set('content-type', body.contentType);
    }
    const { protocol, request: route } = planRoute(url, agents, proxy);
    const wire: RequestOptions = { ...route, method, headers: { ...route.headers, ...plain(headers) } };
    const request = protocol === 'https:' ? httpsRequest(wire) : httpRequest(wire);
    return exchange(request, { body, method, signal, connectTimeoutMs, idleTimeoutMs });
  }

  const close = () => {
    closed = true;
    agents.destroy();
  };
  return Object.assign(send, { close, [Symbol.dispose]: close });
}

function readRequest(input: string | URL | Request, init: RequestInit) {
  if (!(input instanceof Request)) {
    return {
      url: new URL(input),
      method: (init.method ?? 'GET').toUpperCase(),
      headers: new Headers(init.headers),
      body: toNodeBody(init.body),
      signal: init.signal ?? undefined,
    };
  }
  const request = new Request(input, init);
  return {
    url: new URL(request.url),
    method: request.method,
    headers: request.headers,
    body: toNodeBody(request.body),
    signal: request.signal,
  };
}

function plain(headers: Headers): Record<string, string> {
  return Object.fromEntries(headers);
}

/** Direct, through a tunnel, or as an absolute-form request to the proxy (RFC 9112 §3.2.2). */
function planRoute(
  url: URL,
  agents: Agents,
  proxy: ProxySettings | undefined,
): { protocol: string; request: RequestOptions & { servername?: string } } {
  const { protocol } = url;
  const direct: RequestOptions = {
    hostname: bareHostname(url.hostname),
    port: url.port === '' ? (protocol === 'https:' ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    agent: protocol === 'https:' ? agents.https : agents.http,
  };
  if (proxy === undefined || proxy.bypasses(url)) return { protocol, request: direct };
  if (protocol === 'https:') {
    return { protocol, request: { ...direct, ...(agents.tunnel && { agent: agents.tunnel }) } };
  }
  const { authorization } = proxy;
  return {
    protocol: proxy.protocol,
    request: {
      ...{ hostname: proxy.hostname, port: proxy.port, path: `${url.origin}${direct.path}` },
      ...(proxy.protocol === 'https:'
        ? { agent: agents.httpsProxy, servername: proxy.servername }
        : { agent: agents.http }),
      headers: {
        host: url.host,
        ...(authorization !== undefined && { 'proxy-authorization': authorization }),
      },
    },
  };
}

interface ExchangeOptions {
  readonly body: NodeBody;
  readonly method: string;
  readonly signal: AbortSignal | undefined;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** Statuses for which the Response constructor does not allow a body. */
const bodiless: ReadonlySet<number> = new Set([101, 204, 205, 304]);

function exchange(request: ClientRequest, options: ExchangeOptions): Promise<Response> {
  const { signal, body, method, connectTimeoutMs, idleTimeoutMs } = options;
  return new Promise((resolve, reject) => {
    let incoming: IncomingMessage | undefined;
    const abort = () => {
      incoming?.destroy(asError(signal?.reason));
      request.destroy(asError(signal?.reason));
    };
    const done = () => signal?.removeEventListener('abort', abort);
    signal?.addEventListener('abort', abort, { once: true });
    guardConnecting(request, connectTimeoutMs);
    if (idleTimeoutMs > 0) {
      request.setTimeout(idleTimeoutMs, () =>
        request.destroy(timeoutError('UND_ERR_HEADERS_TIMEOUT', `no data for ${idleTimeoutMs} ms`)),
      );
    }
    request.once('close', done);
    // `once` would not do: destroying a request may emit its error twice, and an unhandled one ends
    // the process.
    request.on('error', (error) => reject(signal?.aborted ? signal.reason : fetchFailed(error)));
    request.once('response', (message) => {
      incoming = message;
      try {
        resolve(toResponse(message, method));
      } catch (error) {
        // A Response must have a status from 200 to 599.
        request.destroy();
        reject(fetchFailed(error));
      }
    });
    sendBody(request, body);
  });
}

/** Limits the time until a socket is connected, through proxy and TLS. */
function guardConnecting(request: ClientRequest, connectTimeoutMs: number): void {
  if (connectTimeoutMs <= 0) return;
  const timer = setTimeout(() => {
    request.destroy(timeoutError('UND_ERR_CONNECT_TIMEOUT', `no connection within ${connectTimeoutMs} ms`));
  }, connectTimeoutMs);
  const stop = () => clearTimeout(timer);
  request.once('close', stop);
  request.once('socket', (socket) => {
    if (!socket.connecting) return stop();
    socket.once('secureConnect', stop);
    if (!('encrypted' in socket)) socket.once('connect', stop);
  });
}

function sendBody(request: ClientRequest, { content }: NodeBody): void {
  if (!(content instanceof Readable)) {
    request.end(content);
    return;
  }
  // The request then emits its own error.
  pipeline(content, request).catch((error: unknown) => request.destroy(asError(error)));
}

function toResponse(message: IncomingMessage, method: string): Response {
  const status = message.statusCode ?? 0;
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(message.headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  const init = { status, statusText: message.statusMessage ?? '', headers };
  if (bodiless.has(status) || method === 'HEAD') {
    message.resume();
    return new Response(null, init);
  }
  return new Response(Readable.toWeb(message), init);
}

function timeoutError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** The fetch standard's error for all network failures. */
function fetchFailed(cause: unknown): TypeError {
  return new TypeError('fetch failed', { cause });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
