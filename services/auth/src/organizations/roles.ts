import type { OrganizationPermission, OrganizationRoles } from '../config/organizations.ts';
import type { Settings } from '../config/settings.ts';
import { errors, shorten } from '../errors.ts';

type RoleSettings = Pick<Settings, 'organizationsRoles'>;

/** A role that the settings do not have any more permits nothing. */
function permissionsOf(roles: OrganizationRoles, role: string): readonly OrganizationPermission[] {
  return Object.hasOwn(roles, role) ? (roles[role] ?? []) : [];
}

export function isPermitted(
  { organizationsRoles }: RoleSettings,
  role: string,
  permission: OrganizationPermission,
): boolean {
  return permissionsOf(organizationsRoles, role).includes(permission);
}

/**
 * Whether a member may give a role, or take it away: a member cannot give permissions that the
 * member does not have.
 */
export function maySetRole({ organizationsRoles }: RoleSettings, own: string, role: string): boolean {
  if (own === 'owner') return true;
  const permissions = permissionsOf(organizationsRoles, own);
  return (
    role !== 'owner' && permissionsOf(organizationsRoles, role).every((each) => permissions.includes(each))
  );
}

/** @throws AppError `organization_permission_denied` */
export function requireMaySetRole(settings: RoleSettings, own: string, role: string): void {
  if (!maySetRole(settings, own, role))
    throw errors.organization_permission_denied({
      message: `The role ${own} may not give, change or take away the role ${shorten(role)}`,
    });
}

/** @throws AppError `validation_failed` */
export function readRole({ organizationsRoles }: RoleSettings, role = ''): string {
  if (Object.hasOwn(organizationsRoles, role)) return role;
  const known = Object.keys(organizationsRoles).join(', ');
  throw errors.validation_failed({ message: `role must be one of ${known}` });
}

/**
 * The role of users who join by domain. An empty text is `null`: they cannot.
 *
 * @throws AppError `validation_failed`
 */
export function readDomainRole(settings: RoleSettings, role: string | undefined): string | null | undefined {
  if (role === undefined) return undefined;
  if (role === 'owner') throw errors.validation_failed({ message: 'domain_role must not be owner' });
  return role === '' ? null : readRole(settings, role);
}
