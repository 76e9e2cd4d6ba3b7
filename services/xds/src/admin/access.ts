import { hasAdminScope } from '@tollgate/admin-clients/admin-scopes';
import {
  type CredentialVerifier,
  VerifierUnavailableError,
} from '@tollgate/admin-clients/verify-credentials';
import { isLocalCaller } from '@tollgate/kit/local-caller';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerTokens } from '../ads/bearer-tokens.ts';
import { errors } from '../errors.ts';
import type { Authenticate } from '../operator-api/api.ts';
import { scopeOf } from '../operator-api/operations.ts';

export interface AdminAccess {
  /** Required from all clients of the pages; empty: the pages are for clients on loopback. */
  readonly token: string;
  /** Checks other tokens of clients of the admin API with the auth server. */
  readonly verifier?: CredentialVerifier | undefined;
}

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

/**
 * Guards the admin API in the same way. With a verifier, each request needs a token, which may be a
 * credential of the auth server.
 */
export function createApiGuard({ token, verifier }: AdminAccess): Authenticate {
  const refuse = refuseBy(token);
  const findRefusal: FindRefusal = (request) =>
    token === '' && verifier !== undefined ? 'no token' : refuse(request);
  return async (request, right) => {
    const refusal = findRefusal(request);
    if (refusal === 'not local') throw errors.local_callers_only();
    if (refusal === undefined) return;
    const administrator = verifier && (await verify(verifier, request));
    if (administrator === undefined) throw errors.caller_not_authenticated();
    const scope = scopeOf[right];
    if (!hasAdminScope(administrator.scopes, scope))
      throw errors.right_missing({ message: `the API key or access token lacks the admin scope ${scope}` });
  };
}

/** @throws AppError `keys_unavailable` */
async function verify(verifier: CredentialVerifier, { headers, raw }: FastifyRequest) {
  const [, credential = ''] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  try {
    return await verifier.verify(credential, raw.socket.remoteAddress);
  } catch (cause) {
    throw cause instanceof VerifierUnavailableError ? errors.keys_unavailable({ cause }) : cause;
  }
}
