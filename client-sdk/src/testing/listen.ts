/// <reference lib="esnext.disposable" preserve="true" />
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import { type AuthorizationServer, createAuthorizationServer } from './authorization-server.ts';
import { type AuthorizationServerOptions, resolveSettings } from './settings.ts';

/** Certificates as PEM; the names are those of `node:tls`, whose types are not needed. */
export interface TlsOptions {
  readonly key: string;
  readonly cert: string;
  readonly ca?: string;
  /** Requests client certificates. */
  readonly requestCert?: boolean;
  /** Whether clients without a valid certificate are refused. Default true. */
  readonly rejectUnauthorized?: boolean;
}

/** Options of a server on a loopback port. */
export interface StartOptions extends Omit<AuthorizationServerOptions, 'issuer'> {
  /** Default 0: any free port. */
  port?: number;
  /** Listens with TLS. */
  tls?: TlsOptions;
}

const tlsNames: OptionNames<TlsOptions> = {
  ...{ key: 1, cert: 1, ca: 1, requestCert: 1, rejectUnauthorized: 1 },
};

/** An authorization server for other processes. */
export interface StartedAuthorizationServer extends AuthorizationServer {
  /** Closes all connections. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts `createAuthorizationServer` on 127.0.0.1 in Node; the issuer is its URL.
 *
 * @throws Error if the port is in use.
 */
export async function startAuthorizationServer(
  options: StartOptions = {},
): Promise<StartedAuthorizationServer> {
  const { port = 0, tls, ...serverOptions } = options;
  // Invalid settings throw before a port is open.
  resolveSettings(serverOptions);
  if (tls !== undefined) assertKnownOptions('`tls`', tls, tlsNames);
  const handler = (request: IncomingMessage, response: ServerResponse) => void relay(request, response);
  const listener = makeListener(tls, handler);
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  // A TCP server's address is never a string.
  const { port: actualPort } = listener.address() as AddressInfo;
  const issuer = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${actualPort}`;
  const server = createAuthorizationServer({ ...serverOptions, issuer });

  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      const answer = await server.fetch(await toRequest(request, issuer, gone.signal));
      response.writeHead(answer.status, [...answer.headers].flat());
      response.end(Buffer.from(await answer.arrayBuffer()));
    } catch {
      // A fault broke the connection, or the caller is gone.
      request.socket.destroy();
    }
  }

  const close = () =>
    new Promise<void>((resolve) => {
      listener.close(() => resolve());
      listener.closeAllConnections();
    });
  return { ...server, close, [Symbol.asyncDispose]: close };
}

/** Not imported, so that the module can be loaded and bundled without Node. */
function makeListener(
  tls: TlsOptions | undefined,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  if (tls === undefined) return process.getBuiltinModule('node:http').createServer(handler);
  return process.getBuiltinModule('node:https').createServer(tls, handler);
}

async function toRequest(request: IncomingMessage, base: string, signal: AbortSignal): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const headers = new Headers();
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  return new Request(new URL(request.url ?? '/', base), {
    ...{ method: request.method ?? 'GET', headers, signal },
    ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
  });
}
