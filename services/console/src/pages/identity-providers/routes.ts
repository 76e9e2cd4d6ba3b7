import { actionRoutes } from '../../http/actions.ts';
import type { Area } from '../../http/routes.ts';
import { newProviderSet, providerSet } from './actions.ts';
import { viewProvider, viewProviders } from './view.ts';

const creation = actionRoutes(newProviderSet);
const changes = actionRoutes(providerSet);

/** Identity providers that administrators add. */
export const identityProvidersArea: Area = {
  name: 'identity-providers',
  title: 'Identity providers',
  path: '/identity-providers',
  group: 'Access',
  permission: 'providers',
  pages: [
    { path: '/identity-providers', view: viewProviders },
    { path: providerSet.route, view: viewProvider },
    ...creation.pages,
    ...changes.pages,
  ],
  actions: [...creation.actions, ...changes.actions],
};
