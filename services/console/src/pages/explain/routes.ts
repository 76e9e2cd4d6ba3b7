import type { Area } from '../../http/routes.ts';
import { ask } from './question.ts';
import { viewExplain } from './view.ts';

/** How a request would be decided. */
export const explainArea: Area = {
  name: 'explain',
  title: 'Explain',
  path: '/explain',
  group: 'Traffic',
  permission: 'explain',
  pages: [{ path: '/explain', view: viewExplain }],
  actions: [{ path: '/explain', permission: 'explain', submit: ask }],
};
