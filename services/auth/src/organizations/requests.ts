import type { FastifyRequest } from 'fastify';
import type { OrganizationPermission } from '../config/organizations.ts';
import { settingsSpec } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { uuidParameter } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticatePermanentUser } from '../sessions/authenticate.ts';
import {
  type Change,
  type MemberCaller,
  type OrganizationsContext,
  requireMembership,
} from './organizations.ts';
import type { Membership } from './store.ts';

/** Rejects before the body is read. */
export function requireOrganizations({ settings }: Pick<OrganizationsContext, 'settings'>) {
  return (_request: unknown, _reply: unknown, done: (error?: Error) => void): void =>
    done(
      settings.organizationsEnabled
        ? undefined
        : errors.feature_disabled({
            message: `Organizations are not enabled: set ${settingsSpec.organizationsEnabled.env}`,
            httpStatus: 404,
          }),
    );
}

/** The caller, their membership in the organization of the path, and what the audit log needs. */
interface MemberRequest extends MemberCaller, Change, Membership {}

/** @throws AppError as `authenticatePermanentUser` and `requireMembership` */
export async function readMemberRequest(
  request: FastifyRequest<{ Params: { readonly organization_id: string } }>,
  context: OrganizationsContext,
  permission: OrganizationPermission | 'organization:read',
): Promise<MemberRequest> {
  const caller = await authenticatePermanentUser(request, context);
  const id = uuidParameter(request.params, 'organization_id');
  const membership = await requireMembership(context, id, { ...caller, permission });
  return { ...caller, ...membership, actor: caller.user, metadata: requestMetadata(request, context) };
}
