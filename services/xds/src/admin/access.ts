import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerTokens } from '../ads/bearer-tokens.ts';

/**
 * Addresses of clients in the Pod itself and of `kubectl port-forward`. Not all of 127.0.0.0/8:
 * requests from other Pods come from 127.0.0.6 behind a sidecar of Istio.
 */
const loopback: ReadonlySet<string> = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);

const onlyLoopback =
  'this page is for clients on loopback: use kubectl port-forward, or set XDS_ADMIN_TOKEN and send "Authorization: Bearer <token>"\n';

/**
 * Guards the pages, which show the limits and all limiters: with a token each request must have it,
 * without one the client must be on loopback.
 */
export function createPageGuard(token: string) {
  const tokens = token === '' ? undefined : new BearerTokens([token]);
  return async ({ ip, headers }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (tokens === undefined) {
      return loopback.has(ip) ? undefined : reply.code(403).type('text/plain').send(onlyLoopback);
    }
    if (tokens.check(headers.authorization) === undefined) return undefined;
    reply.code(401).header('www-authenticate', 'Bearer').type('text/plain');
    return reply.send('send "Authorization: Bearer <XDS_ADMIN_TOKEN>"\n');
  };
}
