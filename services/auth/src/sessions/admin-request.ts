import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyRequest } from 'fastify';
import { type AuditActor, auditEntry } from '../audit/audit-log.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { authenticateAdmin } from './authenticate.ts';
import type { SessionsContext } from './issue.ts';

/** The administrator who calls, and their request. */
export interface AdminRequest {
  readonly actor: AuditActor;
  readonly metadata: RequestMetadata;
}

/** Authenticates the administrator. @throws AppError as `authenticateAdmin`. */
export async function readAdminRequest(
  request: FastifyRequest,
  context: SessionsContext,
): Promise<AdminRequest> {
  const { actor } = await authenticateAdmin(request, context);
  return { actor, metadata: requestMetadata(request, context) };
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
