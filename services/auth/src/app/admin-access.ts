import { hasAdminScope } from '@tollgate/admin-clients/admin-scopes';
import type { FastifyRequest, RouteOptions } from 'fastify';
import { auditEntry } from '../audit/audit-log.ts';
import { settingsSpec } from '../config/settings.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { isEqualSecret } from '../keys/secrets.ts';
import { insufficientScope } from '../sessions/admin-request.ts';
import type { AdminScope } from '../sessions/admin-scopes.ts';
import { type AdminCaller, authenticateAdminClient } from '../sessions/authenticate.ts';
import { findAdminKey, readBearer } from './admin-key.ts';
import type { Context } from './context.ts';
import { operations } from './operations.ts';

/**
 * The scope that API keys and OAuth clients need for a route, from the table of operations.
 * Undefined for the handlers of methods that a path does not support.
 *
 * @throws Error for a route of administrators that the table does not have with a scope: the start
 *   fails
 */
export function requiredScope({
  method,
  url,
  schema,
}: Pick<RouteOptions, 'method' | 'url' | 'schema'>): AdminScope | undefined {
  if (schema?.hide === true) return undefined;
  const path = url.replaceAll(/:(\w+)/g, '{$1}');
  const [scope, ...others] = [method].flat().map((one) => {
    const name = `${one === 'HEAD' ? 'GET' : one} ${path}`;
    const operation = operations[name];
    if (operation?.scope === undefined)
      throw new Error(`${name} has no scope: add it to src/app/operations with forAdmin`);
    return operation.scope;
  });
  if (others.some((other) => other !== scope)) throw new Error(`${path} has several scopes in one route`);
  return scope;
}

/**
 * Lets administrators pass: API keys and OAuth clients with the scope, and access tokens with a
 * role of the settings. The route checks the session of these.
 *
 * @throws AppError `insufficient_scope`, and those of `findAdminKey` and `authenticateAdminClient`
 */
export async function authorizeAdmin(
  request: FastifyRequest,
  context: Context,
  scope: AdminScope | undefined,
): Promise<void> {
  const caller =
    findVerifier(request, context) ??
    (await findAdminKey(request, context)) ??
    (await authenticateAdminClient(request, context));
  if (caller === undefined) return;
  if (scope !== undefined && !hasAdminScope(caller.scopes, scope)) {
    const metadata = requestMetadata(request, context);
    const { method, routeOptions } = request;
    const traits = { method, path: routeOptions.url ?? '', scope };
    const { allowed } = await context.limiter.take('denied_admin_entry', caller.actor.id, metadata.nowMs);
    if (allowed)
      await context.store.audit.append(
        auditEntry(caller.actor, 'admin_request_denied', { metadata, traits }),
      );
    throw insufficientScope(scope);
  }
  request.limitedAdmin = caller;
}

/** The services that check credentials, by the token of the settings. */
function findVerifier({ headers }: FastifyRequest, { settings }: Context): Required<AdminCaller> | undefined {
  const { adminVerifierToken: expected } = settings;
  const presented = readBearer(headers);
  if (expected === '' || presented === undefined || !isEqualSecret(presented, expected)) return undefined;
  const name = settingsSpec.adminVerifierToken.env;
  return {
    actor: { kind: 'service_token', id: name, email: name, phone: '', userMetadata: {} },
    scopes: new Set(['keys:verify']),
  };
}
