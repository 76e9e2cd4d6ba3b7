import { isLocalCaller } from '@tollgate/kit/local-caller';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerTokens } from '../ads/bearer-tokens.ts';

const onlyLoopback =
  'this page is for clients on loopback: use kubectl port-forward, or set XDS_ADMIN_TOKEN and send "Authorization: Bearer <token>"\n';

/**
 * Guards the pages, which show the limits and all limiters: with a token each request must have it,
 * without one the client must be on loopback.
 */
export function createPageGuard(token: string) {
  const tokens = token === '' ? undefined : new BearerTokens([token]);
  return async ({ raw, headers }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (tokens === undefined) {
      return isLocalCaller(raw) ? undefined : reply.code(403).type('text/plain').send(onlyLoopback);
    }
    if (tokens.check(headers.authorization) === undefined) return undefined;
    reply.code(401).header('www-authenticate', 'Bearer').type('text/plain');
    return reply.send('send "Authorization: Bearer <XDS_ADMIN_TOKEN>"\n');
  };
}
