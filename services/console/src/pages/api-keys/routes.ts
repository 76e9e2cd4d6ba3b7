import { actionRoutes } from '../../http/actions.ts';
import type { Area } from '../../http/routes.ts';
import { keySet, newKeySet } from './actions.ts';
import { viewKey } from './detail.ts';
import { viewKeys } from './list.ts';

const creation = actionRoutes(newKeySet);
const changes = actionRoutes(keySet);

/** API keys of users, organizations and machines. */
export const apiKeysArea: Area = {
  name: 'api-keys',
  title: 'API keys',
  path: '/api-keys',
  group: 'Access',
  permission: 'api-keys',
  pages: [
    { path: '/api-keys', view: viewKeys },
    { path: '/api-keys/:id', view: viewKey },
    ...creation.pages,
    ...changes.pages,
  ],
  actions: [...creation.actions, ...changes.actions],
};
