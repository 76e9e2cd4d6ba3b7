import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { clientNetwork } from '../../domain/client-network.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors } from '../../errors.ts';
import { networkOf } from '../../fetch/address-guard.ts';
import type { Settings } from '../../settings/settings.ts';
import type { RouteDeps } from './api.ts';

/** Headers that may name the client, when the operator says so. */
const forwardedForHeaders = ['svc-forwarded-for', 'sb-forwarded-for'] as const;

/** Header in which a client that signs in says what kind of session it wants: `mobile`, `web`, … */
const sessionTagHeader = 'x-svc-session-tag';

/** Longer ones are of nobody; the column is not meant for them. */
const maxUserAgentChars = 512;

/** The facts of a request that use cases are given. */
export function requestFacts(
  request: FastifyRequest,
  deps: Pick<RouteDeps, 'nowMs' | 'settings'>,
): RequestFacts {
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
export function requestedAudience(
  request: FastifyRequest,
  { settings }: Pick<RouteDeps, 'settings'>,
): string {
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
