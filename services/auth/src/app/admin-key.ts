import type { FastifyRequest } from 'fastify';
import { digestKey } from '../api-keys/key-format.ts';
import type { Settings } from '../config/settings.ts';
import { usePrecisionMs } from '../db/usage.ts';
import { errors } from '../errors.ts';
import { findKeyProblem, isKeyToken, keyStarts, mayExist, readKeyHeaders } from '../ext-authz/key-caller.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import type { AdminCaller } from '../sessions/authenticate.ts';
import type { Context } from './context.ts';

/**
 * Verifies the API key of an admin request. Undefined if it has none. The database is read each
 * time: these requests are few, and a revocation must hold at once.
 *
 * @throws AppError `several_credentials`, `over_request_rate_limit`, `invalid_api_key`,
 *   `api_key_disabled`, `api_key_expired`, `api_key_network_not_allowed`, `user_banned`
 */
export async function findAdminKey(
  request: FastifyRequest,
  context: Context,
): Promise<Required<AdminCaller> | undefined> {
  const { store, settings, nowMs, background, adminKeyLimit } = context;
  if (!settings.apiKeysEnabled) return undefined;
  const text = readKey(request, settings);
  if (text === undefined) return undefined;
  const { client = { key: undefined, peer: undefined }, clientAddress } = requestMetadata(request, context);
  const digest = digestKey(text);
  adminKeyLimit.check(digest, client);
  const [state] = mayExist(text, settings) ? await store.apiKeyStates.findMany([digest]) : [];
  const key = state && (await store.apiKeys.find(state.id));
  if (state === undefined || key === undefined) {
    adminKeyLimit.recordWrong(client);
    throw errors.invalid_api_key();
  }
  adminKeyLimit.recordRight(digest);
  const now = nowMs();
  const address = () => clientAddress;
  const problem = findKeyProblem(state, { nowMs: now, address });
  // The owner was deleted a moment ago, and the key with them.
  if (problem === 'user_not_found') throw errors.invalid_api_key();
  if (problem !== undefined) throw errors[problem]();
  if (now - (key.last_used_at?.getTime() ?? 0) > usePrecisionMs)
    background.run('use of an API key', () => store.apiKeys.recordUse([{ id: key.id, at: new Date(now) }]));
  return {
    actor: {
      kind: 'api_key',
      id: key.id,
      email: key.name,
      phone: '',
      userMetadata: { full_name: `${key.name} (…${key.last4})` },
    },
    scopes: new Set(state.adminScopes),
  };
}

/**
 * The key in the header `Authorization`, or in one of those for keys. Other values of these may be
 * for a gateway in between.
 */
function readKey({ headers }: FastifyRequest, settings: Settings): string | undefined {
  const starts = keyStarts(settings);
  const bearer = readBearer(headers);
  const sent = [bearer ?? [], ...readKeyHeaders(headers, settings.extAuthzApiKeyHeaders)].flat();
  const keys = sent.filter((text) => isKeyToken(text, starts));
  const hasToken = bearer !== undefined && !keys.includes(bearer);
  if (keys.length > 1 || (keys.length === 1 && hasToken)) throw errors.several_credentials();
  return keys[0];
}

/** The token of the scheme `Bearer`. */
export function readBearer({ authorization = '' }: FastifyRequest['headers']): string | undefined {
  return /^bearer (\S+)$/i.exec(authorization)?.[1];
}
