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
import { SpanKind } from '@opentelemetry/api';
import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import type { PeerGuard } from '@tollgate/kit/grpc/peer';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import type { Tracing } from '@tollgate/kit/telemetry';
import { type HandshakeReport, reportHandshakes, type WatchedTls } from '@tollgate/kit/tls';
import { addHeader, noHeaders, type WantedHeaders } from './codec.ts';
import type { Authorizer } from './decision.ts';
import { ambiguousPath, denialBody, denialHeaders } from './denials.ts';
import type { AuthzRequest } from './request.ts';
import type { AuthzDecision } from './result.ts';

const removeHeader = 'x-envoy-auth-headers-to-remove';
/** Envoy's timeout in milliseconds. Envoy overwrites what a client sends. */
const timeoutHeader = 'x-envoy-expected-rq-timeout-ms';

interface HttpChecks {
  readonly authorizer: Pick<Authorizer, 'authorize'>;
  /** Default none. */
  readonly wantedHeaders?: () => WantedHeaders;
  /** Whether the gateway sends method and path in `X-Forwarded-Method` and `X-Forwarded-Uri`. */
  readonly forwarded: boolean;
  /** Whether such a gateway must send `X-Forwarded-Host`: policies are by host. Default no. */
  readonly needsHost?: boolean;
}

/** Handles checks: with tracing, each in a span of the gateway's trace. */
export function createHttpCheckHandler(
  checks: HttpChecks,
  tracing: Tracing,
): HttpCheckServerOptions['onRequest'] {
  if (!tracing.enabled) return (request, response) => handleHttpCheck(checks, request, response);
  return (request, response) => {
    const parent = tracing.extract(request.headers);
    // Not named after the path, which is that of the authorized request and unbounded.
    const span = tracing.startSpan('ext_authz', { kind: SpanKind.SERVER, parent });
    response.once('close', () => span.end());
    tracing.withSpan(span, () => handleHttpCheck(checks, request, response));
  };
}

/** Responds with 200 and the headers for the upstream, or with the response for the client. */
export function handleHttpCheck(
  { authorizer, wantedHeaders = () => noHeaders, forwarded, needsHost = false }: HttpChecks,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  // Gateways send bodies only if configured to; no decision depends on them.
  request.resume();
  const line = forwarded ? readForwardedLine(request, needsHost) : readLine(request);
  // Envoy treats a 5xx as a failed check, which `failure_mode_allow` lets pass.
  const unavailableStatus = forwarded ? 503 : 403;
  if (line === undefined) {
    respond(response, ambiguousPath(forwardedProblem(needsHost)), unavailableStatus);
    return;
  }
  // Only Envoy overwrites the timeout that a client sends.
  const timeoutMs = forwarded ? undefined : parseTimeoutMs(request);
  const decision = authorizer.authorize(parseRequest(request, line, wantedHeaders()), timeoutMs, () =>
    request.headersDistinct.dpop?.join(),
  );
  if (decision instanceof Promise)
    void decision.then((resolved) => respond(response, resolved, unavailableStatus));
  else respond(response, decision, unavailableStatus);
}

function forwardedProblem(needsHost: boolean): string {
  const names = needsHost
    ? 'X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host'
    : 'X-Forwarded-Method and X-Forwarded-Uri';
  return `the gateway must send ${names}, each once`;
}

/** Undefined unless each header is there once: the client may have sent them, too. */
function readForwardedLine(
  { headersDistinct }: IncomingMessage,
  needsHost: boolean,
): RequestLine | undefined {
  const { 'x-forwarded-method': methods = [], 'x-forwarded-uri': urls = [] } = headersDistinct;
  const { 'x-forwarded-host': hosts = [] } = headersDistinct;
  const [[method], [url], [sentHost = '']] = [methods, urls, hosts];
  if (methods.length !== 1 || urls.length !== 1) return undefined;
  // A gateway that appends to the header of the client leaves a comma.
  const host = hosts.length === 1 && !sentHost.includes(',') ? sentHost : '';
  if (needsHost && host === '') return undefined;
  return { method, url, host };
}

function readLine({ method, url, headers }: IncomingMessage): RequestLine {
  return { method, url, host: headers.host ?? '' };
}

interface RequestLine {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly host: string;
}

/** Reads raw headers, because Node's parsed ones drop repeated values. */
function parseRequest(
  { rawHeaders }: IncomingMessage,
  { method = '', url = '', host }: RequestLine,
  wanted: WantedHeaders,
): AuthzRequest {
  const headers: Record<string, string> = {};
  const authorization: string[] = [];
  const forwardedFor: string[] = [];
  const headerNames = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    headerNames.add(name);
    if (wanted.has(name)) addHeader(headers, name, rawHeaders[index + 1] ?? '');
    if (name === 'authorization') authorization.push(rawHeaders[index + 1] ?? '');
    else if (name === 'x-forwarded-for') forwardedFor.push(rawHeaders[index + 1] ?? '');
  }
  return {
    method,
    path: url,
    host,
    headers,
    authorization,
    sourceAddress: '',
    forwardedFor,
    headerNames: [...headerNames],
  };
}

function parseTimeoutMs({ headers }: IncomingMessage): number | undefined {
  const value = headers[timeoutHeader];
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

function respond(response: ServerResponse, decision: AuthzDecision, unavailableStatus: number): void {
  if (decision.allowed) {
    const { set, remove } = decision.headers;
    const own = {
      ...decision.responseHeaders,
      ...set,
      [removeHeader]: remove.join(','),
      'content-length': 0,
    };
    response.writeHead(200, own).end();
    return;
  }
  const status = decision.httpStatus === 503 ? unavailableStatus : decision.httpStatus;
  response.writeHead(status, denialHeaders(decision)).end(denialBody(decision, status));
}

export interface HttpCheckServerOptions extends HttpServerOptions {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  /** Undefined: plaintext. */
  readonly tls: HttpCheckTls | undefined;
  readonly guard: PeerGuard;
  readonly logger: Logger;
  readonly buffers?: ClientBuffers;
}

interface HttpCheckTls {
  readonly files: WatchedTls;
  /** Whether clients must present a certificate. */
  readonly mutual: boolean;
  readonly handshakes: HandshakeReport;
}

const serverOptions: ServerOptions = {
  // More than Envoy's own limit of 60 KiB.
  maxHeaderSize: 64 * 1024,
  // Envoy sends all headers at once, and waits 200 ms for the response by default.
  requestTimeout: 10_000,
  // Longer than Envoy's default idle timeout, so that Envoy closes idle connections first and no
  // request is lost.
  keepAliveTimeout: 3_660_000,
  // The upstream rejects requests without a Host header.
  requireHostHeader: false,
};

/** A stalled handshake would delay the shutdown. */
const handshakeTimeoutMs = 5_000;

/** Creates the server for checks over HTTP. Every request is a check, whatever its path. */
export function createHttpCheckServer(options: HttpCheckServerOptions): HttpServer {
  const { host, port, tls, onRequest, buffers } = options;
  const server = tls === undefined ? createServer(serverOptions) : createHttpsServer(tls, options);
  server.on('request', onRequest);
  server.on('connect', rejectConnect);
  return new HttpServer(
    {
      server,
      listen: (address) => once(server.listen(address), 'listening'),
      close: () => new Promise((resolve) => server.close(resolve)),
    },
    { host, port },
    { buffers },
  );
}

/**
 * CONNECT has no path. By default Node closes the connection, which Envoy treats as a failed check.
 */
function rejectConnect(_request: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}

function createHttpsServer(
  { files, mutual, handshakes }: HttpCheckTls,
  { guard, logger }: HttpCheckServerOptions,
): Server {
  const server = createTlsServer({
    ...serverOptions,
    ...toSecureContext(files),
    requestCert: mutual,
    rejectUnauthorized: mutual,
    handshakeTimeout: handshakeTimeoutMs,
  });
  files.onChange(() => server.setSecureContext(toSecureContext(files)));
  reportHandshakes(server, handshakes);
  const rejections = new FailureLog({ logger, message: 'connection rejected' });
  server.on('secureConnection', (socket: TLSSocket) => {
    const rejection = guard({ getAuthContext: () => ({ sslPeerCertificate: socket.getPeerCertificate() }) });
    if (rejection === undefined) return;
    rejections.log(new Error(rejection), { peer: socket.remoteAddress });
    socket.destroy();
  });
  return server;
}

/** Applies to new connections. */
function toSecureContext(tls: WatchedTls): Pick<ReturnType<WatchedTls['current']>, 'cert' | 'key' | 'ca'> {
  const { cert, key, ca } = tls.current();
  return { ...(cert && { cert }), ...(key && { key }), ...(ca && { ca }) };
}
