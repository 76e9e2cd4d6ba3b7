import { actionRoutes } from '../../http/actions.ts';
import type { Area } from '../../http/routes.ts';
import { userActionSet } from './actions.ts';
import { viewUser } from './detail.ts';
import { viewUsers } from './list.ts';

const { pages, actions } = actionRoutes(userActionSet);

/** Users and what they have. */
export const usersArea: Area = {
  name: 'users',
  title: 'Users',
  path: '/users',
  group: 'Access',
  permission: 'users',
  pages: [{ path: '/users', view: viewUsers }, { path: '/users/:id', view: viewUser }, ...pages],
  actions,
};
