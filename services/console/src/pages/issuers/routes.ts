import type { Area } from '../../http/routes.ts';
import { viewIssuer } from './detail.ts';
import { viewIssuers } from './list.ts';

/** Other issuers of tokens. They are configured in a file: nothing changes here. */
export const issuersArea: Area = {
  name: 'issuers',
  title: 'Token issuers',
  path: '/issuers',
  group: 'Access',
  permission: 'issuers',
  pages: [
    { path: '/issuers', view: viewIssuers },
    { path: '/issuers/:id', view: viewIssuer },
  ],
  actions: [],
};
