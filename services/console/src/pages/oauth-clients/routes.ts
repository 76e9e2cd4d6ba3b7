import { actionRoutes } from '../../http/actions.ts';
import type { Area } from '../../http/routes.ts';
import { clientSet, newClientSet } from './actions.ts';
import { viewClient } from './detail.ts';
import { viewClients } from './list.ts';

const creation = actionRoutes(newClientSet);
const changes = actionRoutes(clientSet);

/** OAuth clients of the auth server. */
export const oauthClientsArea: Area = {
  name: 'oauth-clients',
  title: 'OAuth clients',
  path: '/oauth-clients',
  group: 'Access',
  permission: 'clients',
  pages: [
    { path: '/oauth-clients', view: viewClients },
    { path: '/oauth-clients/:id', view: viewClient },
    ...creation.pages,
    ...changes.pages,
  ],
  actions: [...creation.actions, ...changes.actions],
};
