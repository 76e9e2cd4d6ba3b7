import { isLocalCaller } from '@tollgate/kit/local-caller';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerTokens } from '../ads/bearer-tokens.ts';
import { errors } from '../errors.ts';
import type { Authenticate } from '../operator-api/api.ts';

const onlyLoopback =
  'this page is for clients on loopback: use kubectl port-forward, or set XDS_ADMIN_TOKEN and send "Authorization: Bearer <token>"\n';

/** Why a client may not see the limits and all limiters; undefined if it may. */
type FindRefusal = (request: FastifyRequest) => 'no token' | 'not local' | undefined;

/** With a token each request must have it, without one the client must be on loopback. */
function refuseBy(token: string): FindRefusal {
  if (token === '') return ({ raw }) => (isLocalCaller(raw) ? undefined : 'not local');
  const tokens = new BearerTokens([token]);
  return ({ headers }) => (tokens.check(headers.authorization) === undefined ? undefined : 'no token');
}

/** Guards the pages. */
export function createPageGuard(token: string) {
  const findRefusal = refuseBy(token);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const refusal = findRefusal(request);
    if (refusal === undefined) return undefined;
    if (refusal === 'not local') return reply.code(403).type('text/plain').send(onlyLoopback);
    reply.code(401).header('www-authenticate', 'Bearer').type('text/plain');
    return reply.send('send "Authorization: Bearer <XDS_ADMIN_TOKEN>"\n');
  };
}

/** Guards the admin API, in the same way. */
export function createApiGuard(token: string): Authenticate {
  const findRefusal = refuseBy(token);
  return (request) => {
    const refusal = findRefusal(request);
    if (refusal === 'not local') throw errors.local_callers_only();
    if (refusal === 'no token') throw errors.caller_not_authenticated();
  };
}
