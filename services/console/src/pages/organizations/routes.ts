import { actionRoutes } from '../../http/actions.ts';
import type { Area } from '../../http/routes.ts';
import { newOrganizationSet, organizationSet } from './actions.ts';
import { viewOrganization } from './detail.ts';
import { viewOrganizations } from './list.ts';

const creation = actionRoutes(newOrganizationSet);
const changes = actionRoutes(organizationSet);

/** Organizations with their members and email domains. */
export const organizationsArea: Area = {
  name: 'organizations',
  title: 'Organizations',
  path: '/organizations',
  group: 'Access',
  permission: 'organizations',
  pages: [
    { path: '/organizations', view: viewOrganizations },
    { path: '/organizations/:id', view: viewOrganization },
    ...creation.pages,
    ...changes.pages,
  ],
  actions: [...creation.actions, ...changes.actions],
};
