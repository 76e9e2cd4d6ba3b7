import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors } from '../../errors.ts';
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
