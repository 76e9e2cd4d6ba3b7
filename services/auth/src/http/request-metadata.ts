import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import type { AuditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { Api } from './api.ts';
import { networkOf } from './fetch.ts';

/**
 * The network of a client address that limits count together: /24 of IPv4, /64 of IPv6, which is what one subscriber is given. An
 * IPv4 address that is mapped into IPv6 is the IPv4 address.
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

/** What every use case knows of the request it serves. */
export interface RequestMetadata {
  /** When it came, Unix time in milliseconds: one moment for all that it causes. */
  readonly nowMs: number;
  /** IP address of the client, trusted proxies looked through. */
  readonly clientAddress: string;
  /** The network of the client, for limits; undefined when a proxy hides it. */
  readonly clientNetwork?: string | undefined;
  /** Empty for none. */
  readonly userAgent: string;
  readonly requestId: string;
  /** What the client calls the kind of session that it asks for, if the settings know it. */
  readonly sessionTag?: string;
  /** Told of each entry that the request makes for the audit log. */
  readonly onAudit?: (entry: AuditEntry) => void;
}

/** Headers that may name the client, when the operator says so. */
const forwardedForHeaders = ['svc-forwarded-for', 'sb-forwarded-for'] as const;

/** Header in which a client that signs in says what kind of session it wants: `mobile`, `web`, … */
const sessionTagHeader = 'x-svc-session-tag';

/** Longer ones are of nobody; the column is not meant for them. */
const maxUserAgentChars = 512;

/** The metadata of a request that use cases are given. */
export function requestMetadata(request: FastifyRequest, deps: Context): RequestMetadata {
  return {
    nowMs: deps.nowMs(),
    clientAddress: clientAddress(request, deps.settings.forwardedForEnabled),
    clientNetwork: networkOfClient(request, deps.settings),
    userAgent: (request.headers['user-agent'] ?? '').slice(0, maxUserAgentChars),
    requestId: request.id,
    onAudit: (entry) => {
      request.auditEntry = entry;
    },
    ...sessionTag(request.headers[sessionTagHeader], deps.settings.sessionTags),
  };
}

/** What the column holds. */
const maxAudienceChars = 255;

/** Audience that a request is for: the header `X-JWT-AUD`, else the default. @throws AppError `validation_failed` for one too long. */
export function requestedAudience(request: FastifyRequest, { settings }: Context): string {
  const header = request.headers['x-jwt-aud'];
  if (typeof header !== 'string' || header === '') return settings.jwtAud;
  if (header.length > maxAudienceChars)
    throw errors.validation_failed({ message: `X-JWT-AUD is longer than ${maxAudienceChars} characters` });
  return header;
}

function sessionTag(header: string | string[] | undefined, tags: readonly string[]): { sessionTag?: string } {
  return typeof header === 'string' && tags.includes(header) ? { sessionTag: header } : {};
}

/** Longer values are cut. */
const maxKeyChars = 256;

/** The first item of the header that names clients for limits (`RATE_LIMIT_HEADER`); undefined for none. */
export function rateLimitKey(
  request: FastifyRequest,
  { rateLimitHeader }: Pick<Settings, 'rateLimitHeader'>,
): string | undefined {
  const header = request.headers[rateLimitHeader.toLowerCase()];
  const first = header?.toString().split(',', 1)[0]?.trim() ?? '';
  return first === '' ? undefined : first.slice(0, maxKeyChars);
}

/** Whether the settings tell how to identify clients. Otherwise all requests may have the address of one proxy. */
export function knowsClients({
  rateLimitHeader,
  forwardedForEnabled,
  trustedProxies,
}: ClientSettings): boolean {
  return rateLimitHeader !== '' || forwardedForEnabled || trustedProxies.length > 0;
}

/** Whether the request comes through a proxy in a private network that no setting trusts. */
export function comesThroughUnknownProxy(
  request: FastifyRequest,
  { forwardedForEnabled, trustedProxies }: ClientSettings,
): boolean {
  const { remoteAddress = '' } = request.socket;
  return (
    !forwardedForEnabled &&
    trustedProxies.length === 0 &&
    request.headers['x-forwarded-for'] !== undefined &&
    networkOf(remoteAddress) === 'private'
  );
}

type ClientSettings = Pick<Settings, 'rateLimitHeader' | 'forwardedForEnabled' | 'trustedProxies'>;

/**
 * The client network for limits of guesses. Behind a proxy that no setting names it is that of the last public address in
 * `X-Forwarded-For`: a forged one only evades the limit per network, not the one per account, whereas the address of the proxy
 * would make one network of all clients, in which an attacker could lock out everyone.
 */
function networkOfClient(request: FastifyRequest, settings: Settings): string | undefined {
  const key = rateLimitKey(request, settings);
  if (key !== undefined) return isIP(key) === 0 ? key : clientNetwork(key);
  if (comesThroughUnknownProxy(request, settings)) {
    const forwarded = request.headers['x-forwarded-for']?.toString().split(',') ?? [];
    const client = forwarded
      .map((address) => address.trim())
      .findLast((address) => isIP(address) !== 0 && networkOf(address) !== 'private');
    return client === undefined ? undefined : clientNetwork(client);
  }
  const address = clientAddress(request, settings.forwardedForEnabled);
  return address === '' ? undefined : clientNetwork(address);
}

function clientAddress(request: FastifyRequest, forwardedForEnabled: boolean): string {
  if (forwardedForEnabled) {
    for (const name of forwardedForHeaders) {
      const first = request.headers[name]?.toString().split(',', 1)[0]?.trim() ?? '';
      if (isIP(first) !== 0) return first;
    }
  }
  // Fastify has looked through the trusted proxies; what they say may be no address at all.
  return isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? '') : request.ip;
}

/** Longest part of `X-Forwarded-For` that is read, enough for two dozen proxies. Each address is matched against all trusted networks. */
const maxChars = 1024;

/** Cuts an overlong `X-Forwarded-For` at the front, which the client controls: proxies append to the end. */
export function addForwardedForBound(api: Api): void {
  api.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const header = headers['x-forwarded-for'];
    if (typeof header === 'string' && header.length > maxChars)
      headers['x-forwarded-for'] = header.slice(header.indexOf(',', header.length - maxChars) + 1);
    done();
  });
}
