import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { PeerGuard } from '@tollgate/kit/grpc/peer';
import { createHttpServer, type HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import { createFailureLog } from '@tollgate/kit/logger';
import type { WatchedTls } from '@tollgate/kit/tls';
import { type HandshakeReport, reportHandshakes } from '@tollgate/kit/tls';
import {
  type AuthorizeRequest,
  type AuthzDecision,
  type AuthzRequest,
  denialBody,
  denialHeaders,
} from './decision.ts';

/** Header of an answer that names those to take away from the request, as Envoy reads it. */
const removeHeader = 'x-envoy-auth-headers-to-remove';

/** Header in which Envoy says when it gives up, in milliseconds. It sets it itself, whatever a client sends. */
const timeoutHeader = 'x-envoy-expected-rq-timeout-ms';

/** Answers one request of Envoy about another one, which has the same method, path and headers. */
export type HttpCheck = (request: IncomingMessage, response: ServerResponse) => void;

/** Makes the function that answers: 200 with the headers for the upstream, or the refusal as the client gets it. */
export function createHttpCheck(authorize: AuthorizeRequest): HttpCheck {
  return (request, response) => {
    // Bodies come only when Envoy is told to send them; nothing is decided by one.
    request.resume();
    const decision = authorize(readRequest(request), readTimeoutMs(request));
    if (decision instanceof Promise) void decision.then((late) => answer(response, late));
    else answer(response, decision);
  };
}

/** Undecoded, and of every header each value: what Node makes of them has lost the second one of a name. */
function readRequest({ method = '', url = '', rawHeaders }: IncomingMessage): AuthzRequest {
  const authorization: string[] = [];
  const headerNames = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    headerNames.add(name);
    if (name === 'authorization') authorization.push(rawHeaders[index + 1] ?? '');
  }
  return { method: method.toUpperCase(), path: url, authorization, headerNames: [...headerNames] };
}

function readTimeoutMs({ headers }: IncomingMessage): number | undefined {
  const value = headers[timeoutHeader];
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

function answer(response: ServerResponse, decision: AuthzDecision): void {
  if (decision.allowed) {
    const { set, remove } = decision.headers;
    response.writeHead(200, { ...set, [removeHeader]: remove.join(','), 'content-length': 0 }).end();
    return;
  }
  // Envoy takes every 5xx for a failure of ours, which `failure_mode_allow` lets pass.
  const status = decision.httpStatus === 503 ? 403 : decision.httpStatus;
  response.writeHead(status, denialHeaders(decision)).end(denialBody(decision, status));
}

/** What the server takes. */
export interface HttpCheckServerDeps {
  readonly check: HttpCheck;
  /** Absent for no TLS. */
  readonly tls: HttpCheckTls | undefined;
  readonly guard: PeerGuard;
  readonly logger: Logger;
}

/** TLS of the server. */
interface HttpCheckTls {
  readonly files: WatchedTls;
  /** Must clients present a certificate? */
  readonly mutual: boolean;
  readonly handshakes: HandshakeReport;
}

const options: ServerOptions = {
  // What Envoy itself lets clients send is 60 KiB; more would be refused here with a status that says nothing.
  maxHeaderSize: 64 * 1024,
  // Envoy sends a few headers at once, and waits for the answer 200 ms when it is not told otherwise.
  requestTimeout: 10_000,
  // Longer than Envoy keeps a connection that it does not use by default: the side that closes first loses no request.
  keepAliveTimeout: 3_660_000,
  // Paths and methods are judged, not routed; a missing Host is for the upstream to complain of.
  requireHostHeader: false,
};

/** How long a TLS handshake may take: one that stalls holds up a stop. */
const handshakeTimeoutMs = 5_000;

/** Makes the server that Envoy's `http_service` asks. Everything that it is asked is a check, whatever the path. */
export function createHttpCheckServer(deps: HttpCheckServerDeps, where: HttpServerOptions): HttpServer {
  const server = deps.tls === undefined ? createServer(options) : withTls(deps.tls, deps);
  server.on('request', deps.check);
  server.on('connect', refuseTunnel);
  return createHttpServer(
    {
      server,
      listen: (address) => once(server.listen(address), 'listening'),
      close: () => new Promise((resolve) => server.close(resolve)),
    },
    where,
  );
}

/** A tunnel has no path to decide on. Left alone, Node hangs up, which Envoy takes for an error. */
function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}

function withTls(
  { files, mutual, handshakes }: HttpCheckTls,
  { guard, logger }: HttpCheckServerDeps,
): Server {
  const server = createTlsServer({
    ...options,
    ...contextOf(files),
    requestCert: mutual,
    rejectUnauthorized: mutual,
    handshakeTimeout: handshakeTimeoutMs,
  });
  files.onChange(() => server.setSecureContext(contextOf(files)));
  reportHandshakes(server, handshakes);
  const logRefusal = createFailureLog({ logger, message: 'connection refused' });
  server.on('secureConnection', (socket: TLSSocket) => {
    const refusal = guard({ getAuthContext: () => ({ sslPeerCertificate: socket.getPeerCertificate() }) });
    if (refusal === undefined) return;
    logRefusal(new Error(refusal), { peer: socket.remoteAddress });
    socket.destroy();
  });
  return server;
}

/** For new connections; those that stand keep what they began with. */
function contextOf(tls: WatchedTls): Pick<ReturnType<WatchedTls['current']>, 'cert' | 'key' | 'ca'> {
  const { cert, key, ca } = tls.current();
  return { ...(cert && { cert }), ...(key && { key }), ...(ca && { ca }) };
}
