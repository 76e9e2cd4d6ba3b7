// Fastify is not used: with its router, validator and serializer it takes 25 MB of memory, a
// quarter of the goal for an idle limiter, and our nine routes have no schemas.
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { readRequestBody } from '@tollgate/kit/body';
import type { HttpApplication, HttpServerOptions } from '@tollgate/kit/http-server';
import { errors } from '../errors.ts';

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Empty for GET and HEAD. */
  readonly body: Buffer;
  readonly socket: IncomingMessage['socket'];
  /** Emits 'close' when the response is complete or the caller has disconnected. */
  readonly response: ServerResponse;
}

export interface HttpReply {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | Readable;
}

type HttpHandler = (request: HttpRequest) => HttpReply | Promise<HttpReply>;

interface HttpRoute {
  readonly path: string;
  /** Every method when absent. */
  readonly methods?: readonly string[];
  readonly handle: HttpHandler;
}

interface HttpRouterOptions {
  readonly routes: readonly HttpRoute[];
  readonly notFound: HttpReply;
  /** The reply to what a handler threw, and to requests that cannot be read. */
  readonly onError: (error: unknown, request: Pick<HttpRequest, 'url' | 'headers'>) => HttpReply;
  readonly bodyLimitBytes: number;
  /** `/stats/` is `/stats`. */
  readonly ignoreTrailingSlash?: boolean;
  /** Called when the server is closed; connections are then cut off. */
  readonly onClose?: () => void;
  /** Default: that of node:http. */
  readonly createServer?: (options: ServerOptions, listener: RequestListener) => Server;
}

/** Time for a request to arrive. */
const requestTimeoutMs = 10_000;
/** Longer than load balancers keep idle connections, which close them first. */
const keepAliveTimeoutMs = 72_000;

/** An HTTP server of fixed paths, whose requests and replies have at most one body. */
export class HttpRouter implements HttpApplication {
  readonly server: Server;
  readonly #options: HttpRouterOptions;

  constructor(options: HttpRouterOptions) {
    this.#options = options;
    const timeouts = { requestTimeout: requestTimeoutMs, keepAliveTimeout: keepAliveTimeoutMs };
    const create = options.createServer ?? createServer;
    this.server = create(timeouts, (message, response) => void this.#serve(message, response));
  }

  async listen(options: HttpServerOptions): Promise<void> {
    this.server.listen(options);
    await once(this.server, 'listening');
  }

  async close(): Promise<void> {
    const { onClose } = this.#options;
    if (onClose !== undefined) {
      onClose();
      this.server.closeAllConnections();
    }
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    await closed;
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers, socket } = message;
    let reply: HttpReply;
    try {
      const body = method === 'GET' || method === 'HEAD' ? Buffer.alloc(0) : await this.#readBody(message);
      const handle = this.#find(method, parsePath(url));
      reply = (await handle?.({ method, url, headers, body, socket, response })) ?? this.#options.notFound;
    } catch (error) {
      reply = this.#options.onError(error, { url, headers });
      // The rest of a body that is too large is not read.
      if (!message.complete) response.shouldKeepAlive = false;
    }
    await send(response, reply);
  }

  async #readBody(message: IncomingMessage): Promise<Buffer> {
    const { bodyLimitBytes } = this.#options;
    if (Number(message.headers['content-length'] ?? 0) > bodyLimitBytes) throw errors.body_too_large();
    return await readRequestBody(message, bodyLimitBytes, () => errors.body_too_large());
  }

  #find(method: string, path: string): HttpHandler | undefined {
    const { routes, ignoreTrailingSlash = false } = this.#options;
    const trim = (text: string) => (ignoreTrailingSlash ? text.replace(/(.)\/$/, '$1') : text);
    return routes.find(
      (route) => trim(route.path) === trim(path) && (route.methods?.includes(method) ?? true),
    )?.handle;
  }
}

function parsePath(url: string): string {
  try {
    return decodeURIComponent(url.split('?', 1)[0] ?? '');
  } catch (cause) {
    throw errors.malformed_request({ message: 'the path is not a valid URL', cause });
  }
}

async function send(
  response: ServerResponse,
  { status = 200, headers = {}, body }: HttpReply,
): Promise<void> {
  response.writeHead(status, headers);
  if (!(body instanceof Readable)) {
    response.end(body);
    return;
  }
  // The caller may have disconnected.
  await pipeline(body, response).catch(() => undefined);
}

/** `nosniff`, because the text may repeat what callers send. */
export function textReply(body: string, status = 200): HttpReply {
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
  return { status, headers, body };
}

export function jsonReply(value: unknown, status = 200): HttpReply {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(value),
  };
}

type DebugHandler = (request: HttpRequest) => Promise<HttpReply> | HttpReply;

export interface DebugPage {
  readonly path: string;
  readonly help: string;
  readonly get: DebugHandler;
  readonly post?: DebugHandler;
}

export function wantsJson({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return headers.accept?.includes('application/json') ?? false;
}

/** The URL of this server as the caller reached it, for shell commands. */
export function getBaseUrl({ headers, socket }: HttpRequest): string {
  const { localPort = 80 } = socket;
  const { host = '' } = headers;
  // Only characters that are safe in shell quotes.
  return `http://${/^[\w.:[\]-]+$/.test(host) ? host : `localhost:${localPort}`}`;
}
