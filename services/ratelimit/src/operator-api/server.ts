import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { TLSSocket } from 'node:tls';
import { hasAdminScope } from '@tollgate/admin-clients/admin-scopes';
import {
  type Administrator,
  CredentialVerifier,
  VerifierUnavailableError,
} from '@tollgate/admin-clients/verify-credentials';
import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { isAppError, toPublicError } from '@tollgate/kit/errors';
import { createSanGuard, type PeerGuard, peerIdentity } from '@tollgate/kit/grpc/peer';
import { HttpServer, type HttpServerOptions } from '@tollgate/kit/http-server';
import { FailureLog, type Logger } from '@tollgate/kit/logger';
import { reportHandshakes, type WatchedTls } from '@tollgate/kit/tls';
import { type AdminRight, adminRights, parseAdminTokens } from '../config/admin-tokens.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { type HttpReply, type HttpRequest, HttpRouter, jsonReply } from '../http/router.ts';
import { type Caller, type Handlers, type OperationId, operations } from './operations.ts';

export interface AdminServerOptions extends HttpServerOptions {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly handlers: Handlers;
  /** Absent without TLS. */
  readonly tls: WatchedTls | undefined;
  readonly onHandshakeFailure: () => void;
  readonly buffers: ClientBuffers;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}

/** A hundred descriptors. */
const bodyLimitBytes = 64 * 1024;
/** Few people and programs use this port. */
const maxConnections = 64;
const handshakeTimeoutMs = 10_000;

/** The port of the counter API: TLS, authentication, errors as JSON. */
export function createAdminServer(options: AdminServerOptions): HttpServer {
  const { logger, handlers, buffers, host, port } = options;
  const failures = new FailureLog({ logger, message: 'counter API request refused' });
  const authenticate = createAuthenticator(options);
  const router = new HttpRouter({
    bodyLimitBytes,
    routes: Object.entries(operations).map(([id, { method, path, right }]) => ({
      path,
      methods: [method],
      // Parsed boundary: entries lose the type of their keys.
      handle: async (request) => handlers[id as OperationId](request, await authenticate(request, right)),
    })),
    notFound: toErrorReply(errors.path_not_found()),
    onError(error) {
      failures.log(error);
      return toErrorReply(error);
    },
    createServer: (serverOptions, listener) =>
      options.tls === undefined
        ? createServer(serverOptions, listener)
        : createSecureServer(options.tls, options, { ...serverOptions, listener }),
  });
  return new HttpServer(router, { host, port }, { maxConnections, buffers });
}

function createSecureServer(
  tls: WatchedTls,
  { settings, logger, onHandshakeFailure }: AdminServerOptions,
  { listener, ...options }: ServerOptions & { readonly listener: RequestListener },
): Server {
  const mutual = settings.adminTlsClientCacert !== '';
  const server = createTlsServer(
    {
      ...options,
      ...tls.current(),
      requestCert: mutual,
      rejectUnauthorized: mutual,
      handshakeTimeout: handshakeTimeoutMs,
    },
    listener,
  );
  tls.onChange((material) => server.setSecureContext({ ...material }));
  reportHandshakes(server, { logger, listener: 'admin', onFailure: onHandshakeFailure });
  return server;
}

/**
 * Returns a function that throws when a request has not all credentials that are configured, or its
 * token not the right.
 */
function createAuthenticator({
  settings,
  nowMs,
}: Pick<AdminServerOptions, 'settings' | 'nowMs'>): (
  request: HttpRequest,
  right: AdminRight,
) => Promise<Caller> {
  const { adminKeysUrl: url, adminKeysToken, adminTlsClientCacert, adminTlsClientSan } = settings;
  const tokens = acceptedTokens(settings);
  const verifier = url === '' ? undefined : new CredentialVerifier({ url, token: adminKeysToken, nowMs });
  const guard = adminTlsClientSan === '' ? undefined : createSanGuard([adminTlsClientSan]);
  return async ({ headers, socket }, right) => {
    const [, presented = ''] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
    const digest = hash(presented);
    const address = socket.remoteAddress;
    // Each one is compared, so that the time does not say which.
    const [token] = tokens.filter((one) => timingSafeEqual(one.digest, digest));
    const found = token ?? (verifier && (await findAdministrator(verifier, presented, address)));
    if ((tokens.length > 0 || verifier !== undefined) && found === undefined)
      throw errors.caller_not_authenticated();
    const hasCertificate = adminTlsClientCacert !== '' && socket instanceof TLSSocket;
    const identity = hasCertificate ? identify(socket, guard) : 'token';
    // Callers with a certificate only have all rights.
    if (found?.rights?.has(right) === false)
      throw errors.right_missing({ message: `the token ${found.name} lacks the right ${right}` });
    const { administrator } = found ?? {};
    return {
      caller: found?.name ?? identity,
      ...(administrator && { callerKind: administrator.kind, callerId: administrator.id }),
      address,
    };
  };
}

/** Who calls, and what they may do. */
interface KnownCaller {
  /** Absent for ADMIN_TOKEN, which has all rights and no name. */
  readonly name?: string;
  readonly rights?: ReadonlySet<AdminRight>;
  /** Absent for a token of the settings. */
  readonly administrator?: Administrator;
}

/** Admin scopes of the auth server by the rights that they give. */
const scopeOf: Readonly<Record<AdminRight, string>> = {
  read: 'limits:read',
  reserve: 'limits:write',
  settings: 'settings:read',
  write: 'limits:write',
};

/** @throws AppError `keys_unavailable` */
async function findAdministrator(
  verifier: CredentialVerifier,
  presented: string,
  address: string | undefined,
): Promise<KnownCaller | undefined> {
  const administrator = await verifier.verify(presented, address).catch((cause: unknown) => {
    throw cause instanceof VerifierUnavailableError ? errors.keys_unavailable({ cause }) : cause;
  });
  if (administrator === undefined) return undefined;
  const rights = adminRights.filter((right) => hasAdminScope(administrator.scopes, scopeOf[right]));
  return { name: administrator.name, rights: new Set(rights), administrator };
}

interface AcceptedToken extends KnownCaller {
  readonly digest: Buffer;
}

function acceptedTokens({ adminToken, adminTokens }: Settings): readonly AcceptedToken[] {
  const named = parseAdminTokens(adminTokens) ?? [];
  return [
    ...(adminToken === '' ? [] : [{ digest: hash(adminToken) }]),
    ...named.map(({ name, rights, token }) => ({ digest: hash(token), name, rights })),
  ];
}

/** Hashes have equal lengths, as the comparison requires. */
function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** The handshake has verified the certificate. */
function identify(socket: TLSSocket, guard: PeerGuard | undefined): string {
  const certificate = socket.getPeerCertificate();
  const call = { getAuthContext: () => ({ sslPeerCertificate: certificate }) };
  if (guard?.(call) !== undefined) throw errors.certificate_not_accepted();
  return peerIdentity(call) || String(certificate.subject?.CN ?? 'certificate');
}

/** Here, the counter store and the rules are the server's part, not the caller's. */
function toErrorReply(error: unknown): HttpReply {
  const { code, httpStatus, message } = toPublicError(error);
  const isUnavailable = isAppError(error, 'backend_failure') || isAppError(error, 'no_configuration');
  const reply = jsonReply({ code, message }, isUnavailable ? 503 : httpStatus);
  return httpStatus === 401
    ? { ...reply, headers: { ...reply.headers, 'www-authenticate': 'Bearer' } }
    : reply;
}
