import type { Area } from '../../http/routes.ts';
import { viewUser } from './detail.ts';
import { viewUsers } from './list.ts';

/** Users and what they have. */
export const usersArea: Area = {
  name: 'users',
  title: 'Users',
  path: '/users',
  group: 'Access',
  permission: 'users',
  pages: [
    { path: '/users', permission: 'users', view: viewUsers },
    { path: '/users/:id', permission: 'users', view: viewUser },
  ],
  actions: [],
};
