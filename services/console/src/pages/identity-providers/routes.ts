import { actionRoutes } from '../../http/actions.ts';
import type { Area } from '../../http/routes.ts';
import { providerSet } from './provider.ts';
import { viewProvider, viewProviders } from './view.ts';

const { pages, actions } = actionRoutes(providerSet);

/** Identity providers that administrators add. */
export const identityProvidersArea: Area = {
  name: 'identity-providers',
  title: 'Identity providers',
  path: '/identity-providers',
  group: 'Access',
  permission: 'providers',
  pages: [
    { path: '/identity-providers', permission: 'providers', view: viewProviders },
    { path: providerSet.route, permission: 'providers', view: viewProvider },
    ...pages,
  ],
  actions,
};
