import { isAppError } from '@tollgate/kit/errors';
import { Type } from 'typebox';
import { isKeyToken, keyStarts } from '../ext-authz/key-caller.ts';
import { type VerifyContext, verifyKey } from '../ext-authz/verify-key.ts';
import { type AddRoutes, body, bodyLimits, optionalText } from '../http/api.ts';
import { adminScopes } from '../sessions/admin-scopes.ts';
import { authenticateAdmin, verifyAdminToken } from '../sessions/authenticate.ts';
import type { SessionsContext } from '../sessions/context.ts';

type CredentialContext = SessionsContext & VerifyContext;

/** The caller of another service's admin API. */
interface VerifiedCredential {
  readonly valid: boolean;
  /** `ok`, or the error code of the admin API. */
  readonly code: string;
  readonly administrator?: {
    readonly kind: 'administrator' | 'api_key' | 'service_token';
    readonly id: string;
    readonly name: string;
    readonly admin_scopes: readonly string[];
  };
}

const verifyBody = body({
  credential: Type.String({ examples: ['tg_a1B2_9f8e7d6c'] }),
  address: optionalText,
});

/** `/admin/credentials/verify` */
export const addCredentialRoutes: AddRoutes<CredentialContext> = (api, context) => {
  const options = { schema: { body: verifyBody }, bodyLimit: bodyLimits.contact };
  api.post('/admin/credentials/verify', options, async (request, reply) => {
    await authenticateAdmin(request, context);
    return reply.header('cache-control', 'no-store').send(await verifyCredential(context, request.body));
  });
};

function verifyCredential(
  context: CredentialContext,
  { credential, address }: { readonly credential: string; readonly address?: string },
): Promise<VerifiedCredential> {
  const isToken =
    /^[\w-]+\.[\w-]+\.[\w-]+$/.test(credential) && !isKeyToken(credential, keyStarts(context.settings));
  return isToken
    ? verifyToken(context, credential)
    : verifyAdminKey(context, { key: credential, ...(address !== undefined && { address }) });
}

async function verifyAdminKey(
  context: CredentialContext,
  request: Parameters<typeof verifyKey>[1],
): Promise<VerifiedCredential> {
  if (!context.settings.apiKeysEnabled) return { valid: false, code: 'invalid_api_key' };
  const { valid, code, key } = await verifyKey(context, request);
  return { valid, code, ...(key && { administrator: { kind: 'api_key', ...key } }) };
}

async function verifyToken(context: CredentialContext, token: string): Promise<VerifiedCredential> {
  try {
    const { actor, scopes } = await verifyAdminToken(token, context);
    const { id, email, phone } = actor;
    const kind = actor.kind === 'service_token' ? 'service_token' : 'administrator';
    const admin_scopes = scopes === undefined ? adminScopes : [...scopes];
    return {
      valid: true,
      code: 'ok',
      administrator: { kind, id, name: email || phone || id, admin_scopes },
    };
  } catch (error) {
    if (!isAppError(error) || error.httpStatus >= 500) throw error;
    return { valid: false, code: error.code };
  }
}
