import { forAdmin, type Operations } from './operation.ts';

export const adminOrganizationsOperations: Operations = {
  'GET /admin/organizations': {
    id: 'adminListOrganizations',
    ...forAdmin('organizations:write'),
    summary: 'List organizations, newest first, by cursor (`pagination`, `Link`)',
    response: 'OrganizationPage',
  },
  'POST /admin/organizations': {
    id: 'adminCreateOrganization',
    ...forAdmin('organizations:write'),
    summary: 'Create an organization',
    response: 'Organization',
    status: 201,
    example: ['name', 'slug', 'plan'],
  },
  'GET /admin/organizations/{organization_id}': {
    id: 'adminGetOrganization',
    ...forAdmin('organizations:write'),
    summary: 'Get an organization',
    response: 'Organization',
  },
  'PUT /admin/organizations/{organization_id}': {
    id: 'adminUpdateOrganization',
    ...forAdmin('organizations:write'),
    summary: 'Change an organization. An empty text or object removes the value',
    response: 'Organization',
    example: ['plan', 'limit'],
  },
  'DELETE /admin/organizations/{organization_id}': {
    id: 'adminDeleteOrganization',
    ...forAdmin('organizations:write'),
    summary: 'Delete an organization',
    status: 204,
  },
  'GET /admin/organizations/{organization_id}/domains': {
    id: 'adminListDomains',
    ...forAdmin('organizations:write'),
    summary: 'List the email domains of an organization',
    response: 'DomainList',
  },
  'POST /admin/organizations/{organization_id}/domains': {
    id: 'adminClaimDomain',
    ...forAdmin('organizations:write'),
    summary: 'Claim an email domain for an organization. The response has the DNS record that proves it',
    response: 'Domain',
    status: 201,
    example: ['domain'],
  },
  'POST /admin/organizations/{organization_id}/domains/{domain}/verify': {
    id: 'adminVerifyDomain',
    ...forAdmin('organizations:write'),
    summary: 'Verify a claimed email domain by its DNS record',
    response: 'Domain',
  },
  'PUT /admin/organizations/{organization_id}/domains/{domain}': {
    id: 'adminSetDomain',
    ...forAdmin('organizations:write'),
    summary:
      'Give an email domain to an organization, without a record. With `domain_role`, its users may join',
    response: 'Domain',
  },
  'DELETE /admin/organizations/{organization_id}/domains/{domain}': {
    id: 'adminRemoveDomain',
    ...forAdmin('organizations:write'),
    summary: 'Take an email domain from an organization',
    status: 204,
  },
  'GET /admin/organizations/{organization_id}/members': {
    id: 'adminListMembers',
    ...forAdmin('organizations:write'),
    summary: 'List the members of an organization: all, or by cursor with `limit` or `cursor`',
    response: 'MemberPage',
  },
  'PUT /admin/organizations/{organization_id}/members/{user_id}': {
    id: 'adminSetMember',
    ...forAdmin('organizations:write'),
    summary: 'Add a user to an organization, or change their role',
    response: 'Member',
  },
  'DELETE /admin/organizations/{organization_id}/members/{user_id}': {
    id: 'adminRemoveMember',
    ...forAdmin('organizations:write'),
    summary: 'Remove a member from an organization',
    status: 204,
  },
};
