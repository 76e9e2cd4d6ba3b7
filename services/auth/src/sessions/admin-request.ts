import { hasAdminScope } from '@tollgate/admin-clients/admin-scopes';
import type { AppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyRequest } from 'fastify';
import { type AuditActor, auditEntry } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { authenticateAdmin } from './authenticate.ts';
import type { SessionsContext } from './context.ts';

/** The administrator who calls, and their request. */
export interface AdminRequest {
  readonly actor: AuditActor;
  /** The rights of an API key, or of an OAuth client. Undefined: all. */
  readonly scopes?: ReadonlySet<string>;
  readonly metadata: RequestMetadata;
}

/** Authenticates the administrator. @throws AppError as `authenticateAdmin`. */
export async function readAdminRequest(
  request: FastifyRequest,
  context: SessionsContext,
): Promise<AdminRequest> {
  return { ...(await authenticateAdmin(request, context)), metadata: requestMetadata(request, context) };
}

/**
 * Checks that the caller has all of these rights, which it is about to give to another one.
 *
 * @throws AppError `insufficient_scope`
 */
export function checkScopes({ scopes }: Pick<AdminRequest, 'scopes'>, needed: readonly string[]): void {
  const missing = scopes && needed.find((scope) => !hasAdminScope(scopes, scope));
  if (missing !== undefined) throw insufficientScope(missing);
}

/** The error that names the missing scope. */
export function insufficientScope(scope: string): AppError {
  return errors.insufficient_scope({ message: `The API key or access token lacks the scope ${scope}` });
}

/**
 * Whether the administrator may change a user with this role, or give it. API keys must not change
 * administrators or make them: a sign-in with such a role has all rights.
 */
export function mayChangeRole(
  { scopes }: Pick<AdminRequest, 'scopes'>,
  role: string | undefined,
  { jwtAdminRoles }: Pick<Settings, 'jwtAdminRoles'>,
): boolean {
  return scopes === undefined || role === undefined || !jwtAdminRoles.includes(role);
}

/** @throws AppError `insufficient_scope` */
export function checkRoles(
  request: Pick<AdminRequest, 'scopes'>,
  roles: readonly (string | undefined)[],
  settings: Pick<Settings, 'jwtAdminRoles'>,
): void {
  if (roles.every((role) => mayChangeRole(request, role, settings))) return;
  throw errors.insufficient_scope({
    message:
      'API keys and OAuth clients must not change users with a role of SVC_JWT_ADMIN_ROLES, or give such a role',
  });
}

/** An audit entry of an administrator's action on a user. */
export function userAuditEntry(
  { actor, metadata }: AdminRequest,
  action: Parameters<typeof auditEntry>[1],
  { id, email, phone }: { readonly id: string; readonly email: string; readonly phone: string },
  traits?: JsonObject,
) {
  return auditEntry(actor, action, {
    metadata,
    traits: { user_id: id, user_email: email, user_phone: phone, ...traits },
  });
}
