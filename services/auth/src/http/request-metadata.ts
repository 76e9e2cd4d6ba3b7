import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { JsonObject } from '@tollgate/kit/json';
import type { Logger } from '@tollgate/kit/logger';
import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import { errors } from '../errors.ts';
import type { LimitedClient } from '../limits/limiter.ts';
import { classifyAddress } from '../outbound/fetch.ts';
import type { Api } from './api.ts';

/**
 * The network by which rate limits group clients: /24 of IPv4, /64 of IPv6, the usual size of a
 * subscriber. IPv4-mapped addresses are IPv4.
 *
 * @param address a valid IP address
 * @see RFC 6177 §2 https://www.rfc-editor.org/rfc/rfc6177#section-2
 */
export function clientNetwork(address: string): string {
  const ipv4 = /^(?:::ffff:)?(\d+\.\d+\.\d+)\.\d+$/i.exec(address)?.[1];
  if (ipv4 !== undefined) return `${ipv4}.0/24`;
  const [head = '', tail] = address.split('%', 1).join().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  const groups = [...left, ...zeros, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16));
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}

/** An audit entry, for the access log. */
interface LoggedEvent {
  readonly payload: JsonObject;
}

export interface RequestMetadata {
  /** Time of the request, Unix time in milliseconds. */
  readonly nowMs: number;
  /** IP address of the client, behind trusted proxies. */
  readonly clientAddress: string;
  /** Limits of guesses count by it. Undefined if it is hidden by a proxy. */
  readonly clientNetwork?: string | undefined;
  /** Limits of requests count by it. */
  readonly client?: LimitedClient;
  /** Empty if the header is missing. */
  readonly userAgent: string;
  /** The header `Accept-Language`. */
  readonly acceptLanguage?: string | undefined;
  readonly requestId: string;
  /** Start of links in emails, if it is not `API_EXTERNAL_URL`. */
  readonly linkOrigin?: string | undefined;
  /** The requested kind of session, if the settings list it. */
  readonly sessionTag?: string;
  /** Called with each audit entry of the request. */
  readonly onAudit?: (entry: LoggedEvent) => void;
}

/** Headers with the client address, if enabled. */
const forwardedForHeaders = ['svc-forwarded-for', 'sb-forwarded-for'] as const;

/** The requested kind of session, such as `mobile` or `web`. */
const sessionTagHeader = 'x-svc-session-tag';

const maxUserAgentChars = 512;

/** Both headers are those of any client: the settings list what they may be. */
function getLinkOrigin(
  { headers }: FastifyRequest,
  { mailerExternalHosts }: Pick<Settings, 'mailerExternalHosts'>,
): string | undefined {
  if (mailerExternalHosts.length === 0) return undefined;
  const { 'x-forwarded-host': forwardedHost, 'x-forwarded-proto': protocol, host: ownHost = '' } = headers;
  const host = String(forwardedHost || ownHost.replace(/:\d+$/, '')).toLowerCase();
  if (!mailerExternalHosts.includes(host)) return undefined;
  return host === 'localhost' && protocol !== 'https' ? 'http://localhost' : `https://${host}`;
}

export function requestMetadata(request: FastifyRequest, { settings, nowMs }: BaseContext): RequestMetadata {
  return {
    nowMs: nowMs(),
    clientAddress: getClientAddress(request, settings.forwardedForEnabled),
    clientNetwork: getClientNetwork(request, settings),
    client: limitedClient(request, settings),
    userAgent: (request.headers['user-agent'] ?? '').slice(0, maxUserAgentChars),
    acceptLanguage: request.headers['accept-language'],
    requestId: request.id,
    linkOrigin: getLinkOrigin(request, settings),
    onAudit: (entry) => {
      request.auditEntry = entry;
    },
    ...sessionTag(request.headers[sessionTagHeader], settings.sessionTags),
  };
}

/** Size of the column. */
const maxAudienceChars = 255;

/**
 * The header `X-JWT-AUD`, or the default audience.
 *
 * @throws AppError `validation_failed` if it is too long.
 */
export function requestedAudience(request: FastifyRequest, { settings }: BaseContext): string {
  const header = request.headers['x-jwt-aud'];
  if (typeof header !== 'string' || header === '') return settings.jwtAud;
  if (header.length > maxAudienceChars)
    throw errors.validation_failed({ message: `X-JWT-AUD is longer than ${maxAudienceChars} characters` });
  return header;
}

function sessionTag(header: string | string[] | undefined, tags: readonly string[]): { sessionTag?: string } {
  return typeof header === 'string' && tags.includes(header) ? { sessionTag: header } : {};
}

/** Longer values are truncated. */
const maxKeyChars = 256;

/** The first item of the header that identifies clients (`RATE_LIMIT_HEADER`). */
function rateLimitKey(
  request: FastifyRequest,
  { rateLimitHeader }: Pick<Settings, 'rateLimitHeader'>,
): string | undefined {
  const header = request.headers[rateLimitHeader.toLowerCase()];
  const first = header?.toString().split(',', 1)[0]?.trim() ?? '';
  return first === '' ? undefined : first.slice(0, maxKeyChars);
}

/** Otherwise all requests may have the address of the same proxy. */
function canIdentifyClients({
  rateLimitHeader,
  forwardedForEnabled,
  trustedProxies,
}: ClientSettings): boolean {
  return rateLimitHeader !== '' || forwardedForEnabled || trustedProxies.length > 0;
}

/** Whether the request was forwarded by a proxy in a private network that is not trusted. */
function hasUntrustedProxy(
  request: FastifyRequest,
  { forwardedForEnabled, trustedProxies }: ClientSettings,
): boolean {
  const { remoteAddress = '' } = request.socket;
  return (
    !forwardedForEnabled &&
    trustedProxies.length === 0 &&
    request.headers['x-forwarded-for'] !== undefined &&
    classifyAddress(remoteAddress) === 'private'
  );
}

/**
 * The client that limits count a request for. A peer that forwards requests may be the proxy of all
 * clients.
 */
export function limitedClient(request: FastifyRequest, settings: ClientSettings): LimitedClient {
  return { key: clientKey(request, settings), peer: request.socket.remoteAddress };
}

function clientKey(request: FastifyRequest, settings: ClientSettings): string | undefined {
  const key = rateLimitKey(request, settings);
  if (key !== undefined) return isIP(key) === 0 ? key : addressKey(key);
  if (canIdentifyClients(settings))
    return addressKey(getClientAddress(request, settings.forwardedForEnabled));
  const { remoteAddress = '' } = request.socket;
  const isForwarded = request.headers['x-forwarded-for'] !== undefined;
  const isClient = !isForwarded && isIP(remoteAddress) !== 0 && classifyAddress(remoteAddress) === 'public';
  return isClient ? addressKey(remoteAddress) : undefined;
}

/** A subscriber has a /64 of IPv6, and can send from any address in it. */
function addressKey(address: string): string {
  const ipv4 = address.replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(ipv4) === 6 ? clientNetwork(ipv4) : ipv4;
}

type ClientSettings = Pick<Settings, 'rateLimitHeader' | 'forwardedForEnabled' | 'trustedProxies'>;

/**
 * The network for guess limits. Behind an untrusted proxy it is that of the last public address in
 * `X-Forwarded-For`. A forged address evades the limit per network, but not the one per account;
 * the address of the proxy would let an attacker lock out all clients.
 */
function getClientNetwork(request: FastifyRequest, settings: Settings): string | undefined {
  const key = rateLimitKey(request, settings);
  if (key !== undefined) return isIP(key) === 0 ? key : clientNetwork(key);
  if (hasUntrustedProxy(request, settings)) {
    const forwarded = request.headers['x-forwarded-for']?.toString().split(',') ?? [];
    const client = forwarded
      .map((address) => address.trim())
      .findLast((address) => isIP(address) !== 0 && classifyAddress(address) !== 'private');
    return client === undefined ? undefined : clientNetwork(client);
  }
  const address = getClientAddress(request, settings.forwardedForEnabled);
  return address === '' ? undefined : clientNetwork(address);
}

function getClientAddress(request: FastifyRequest, forwardedForEnabled: boolean): string {
  if (forwardedForEnabled) {
    for (const name of forwardedForHeaders) {
      const first = request.headers[name]?.toString().split(',', 1)[0]?.trim() ?? '';
      if (isIP(first) !== 0) return first;
    }
  }
  // Fastify has resolved trusted proxies, which may report something other than an address.
  return isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? '') : request.ip;
}

/** Enough for two dozen proxies. Each address is matched against all trusted networks. */
const maxForwardedForChars = 1024;

/**
 * Truncates `X-Forwarded-For` at the start, which the client controls: proxies append to the end.
 */
export function limitForwardedFor(api: Api): void {
  api.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const header = headers['x-forwarded-for'];
    if (typeof header === 'string' && header.length > maxForwardedForChars)
      headers['x-forwarded-for'] = header.slice(
        header.indexOf(',', header.length - maxForwardedForChars) + 1,
      );
    done();
  });
}

/** Request ids of callers are logged, so they must have this form. */
const requestIdForm = /^[\w.:-]{1,128}$/;

/** Generates ids of requests; the id that a caller sends in the configured header is kept. */
export function requestIds({ requestIdHeader }: Pick<Settings, 'requestIdHeader'>) {
  const name = requestIdHeader.toLowerCase();
  return ({ headers }: Pick<IncomingMessage, 'headers'>): string => {
    const inherited = headers[name];
    return typeof inherited === 'string' && requestIdForm.test(inherited) ? inherited : randomUUID();
  };
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The last audit entry of the request. */
    auditEntry: LoggedEvent | undefined;
  }
}

const maxRefererChars = 200;

/** Logs each response. Queries, headers and bodies are not logged: they may hold tokens. */
export function addAccessLog(api: Api, logger: Logger): void {
  // The fields below have no names that are redacted.
  const log = logger.child({ component: 'api' }, { redact: [] });
  api.decorateRequest('auditEntry', undefined);
  api.addHook('onResponse', (request, reply, done) => {
    const { auditEntry } = request;
    log.info(
      {
        method: request.method,
        path: request.url.split('?', 1)[0],
        route: request.routeOptions.url,
        remote_addr: request.ip,
        referer: toLoggedReferer(request.headers.referer),
        request_id: request.id,
        status: reply.statusCode,
        duration: Math.round(reply.elapsedTime * 1e6),
        ...(auditEntry && { auth_audit_event: toLoggedEvent(auditEntry) }),
      },
      'request completed',
    );
    done();
  });
}

/** Leaves out query and fragment, which may hold tokens. */
function toLoggedReferer(referer: string | undefined): string | undefined {
  const url = referer === undefined ? null : URL.parse(referer);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return `${url.origin}${url.pathname}`.slice(0, maxRefererChars);
}

/** Ids only: names and addresses are in the audit log. */
function toLoggedEvent({
  payload: { action, log_type, actor_id, actor_via_sso },
}: LoggedEvent): Readonly<Record<string, unknown>> {
  return { action, log_type, actor_id, actor_via_sso };
}
