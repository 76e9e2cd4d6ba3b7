import { Resolver } from 'node:dns';
import {
  bool,
  duration,
  int,
  list,
  oneOf,
  type Setting,
  type SettingsCheck,
  text,
} from '@tollgate/kit/settings';
import { svc } from './builders.ts';

const group = 'Organizations';

/** Permissions of roles. All members may read the organization. */
const organizationPermissions = {
  'organization:update': 'change name and slug',
  'organization:delete': 'delete the organization',
  'members:read': 'list members',
  'members:write': 'change roles, and remove members',
  'members:invite': 'list, send and revoke invitations',
  'domains:write': 'list, add, verify and remove email domains, and choose the role of their users',
  'keys:read': 'list API keys',
  'keys:write': 'create, change, rotate and revoke API keys',
} as const;

export type OrganizationPermission = keyof typeof organizationPermissions;

const allPermissions = Object.keys(organizationPermissions) as OrganizationPermission[]; // of the constant above

/** Permissions by role. */
export type OrganizationRoles = Readonly<Record<string, readonly OrganizationPermission[]>>;

const builtInRoles = {
  owner: allPermissions,
  admin: allPermissions.filter((permission) => permission !== 'organization:delete'),
  member: ['members:read'],
} as const satisfies OrganizationRoles;

const rolesForm = `a JSON object of roles and their permissions, such as {"billing":["members:read"]}; permissions are ${allPermissions.join(', ')}`;

const roleForm = /^[a-z][a-z0-9_-]{0,62}$/;
/** The roles are in settings, and are compared by each request. */
const maxRoles = 50;

function parseRoles(value: string): OrganizationRoles | undefined {
  if (value.trim() === '') return builtInRoles;
  const parsed = parseJson(value);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const roles = Object.entries(parsed);
  const isValid =
    roles.length <= maxRoles &&
    roles.every(
      ([name, permissions]) => roleForm.test(name) && name !== 'owner' && isPermissions(permissions),
    );
  return isValid ? Object.freeze({ ...builtInRoles, ...Object.fromEntries(roles) }) : undefined;
}

function parseJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

function isPermissions(value: unknown): value is readonly OrganizationPermission[] {
  return Array.isArray(value) && value.every((each) => Object.hasOwn(organizationPermissions, String(each)));
}

function roles(options: Parameters<typeof text>[0] & { readonly default: '' }): Setting<OrganizationRoles> {
  return Object.freeze({
    ...text(options),
    form: rolesForm,
    parse: parseRoles,
    fallback: { value: builtInRoles, text: '' },
  });
}

export const organizationSettings = {
  organizationsEnabled: bool({
    ...svc('ORGANIZATIONS_ENABLED'),
    group,
    default: false,
    doc: 'Users can have organizations, whose plan and limit members share. Off: none of their routes exists.',
  }),
  organizationsCreate: oneOf(['any', 'admin'], {
    ...svc('ORGANIZATIONS_CREATE'),
    group,
    default: 'any',
    doc: 'Who creates organizations: `any` user who is not anonymous, or `admin`: only the admin API.',
  }),
  organizationsMaxPerUser: int({
    ...svc('ORGANIZATIONS_MAX_PER_USER'),
    group,
    default: 20,
    min: 1,
    max: 1000,
    doc: 'Maximum number of organizations of a user. Administrators may add users to more.',
  }),
  organizationsMaxMembers: int({
    ...svc('ORGANIZATIONS_MAX_MEMBERS'),
    group,
    default: 1000,
    min: 1,
    max: 1_000_000,
    doc: 'Maximum number of members and pending invitations of an organization. Administrators may add more.',
  }),
  organizationsRoles: roles({
    ...svc('ORGANIZATIONS_ROLES'),
    group,
    default: '',
    doc: 'Roles in addition to `owner`, `admin` and `member`, with their permissions: a JSON object. May replace `admin` and `member`.',
  }),
  rateLimitOrganizationInvitations: int({
    ...svc('RATE_LIMIT_ORGANIZATION_INVITATIONS'),
    group,
    default: 50,
    min: 1,
    max: 1_000_000,
    doc: 'Invitations that a user may send in an hour. An address gets at most 10 a day.',
  }),
  organizationsDnsServers: list({
    ...svc('ORGANIZATIONS_DNS_SERVERS'),
    group,
    default: [],
    doc: 'DNS servers that are asked for the records of email domains: `192.0.2.53`, `192.0.2.53:5353`, `[2001:db8::53]:53`. Default: those of the system.',
  }),
  organizationsDnsTimeoutMs: duration({
    ...svc('ORGANIZATIONS_DNS_TIMEOUT'),
    group,
    default: '5s',
    min: '100ms',
    max: '60s',
    doc: 'Timeout of a check of the record of an email domain.',
  }),
  organizationsInvitationExpMs: duration({
    ...svc('ORGANIZATIONS_INVITATION_EXP'),
    group,
    default: '168h',
    min: '1m',
    max: '8760h',
    doc: 'Lifetime of an invitation.',
  }),
};

function isDnsServer(server: string): boolean {
  try {
    new Resolver().setServers([server]);
    return true;
  } catch {
    return false;
  }
}

type Check = SettingsCheck<typeof organizationSettings>;

const dnsServersAreUsable: Check = (s, { problem }) =>
  s.organizationsDnsServers.every(isDnsServer)
    ? undefined
    : problem('organizationsDnsServers', 'addresses such as 192.0.2.53 or [2001:db8::53]:53');

export const organizationChecks: readonly Check[] = [dnsServersAreUsable];
