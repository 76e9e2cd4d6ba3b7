import type { Area } from '../../http/routes.ts';
import { viewOverview } from './overview.ts';

/** Shows the current state in one page, which may stay open. */
export const overviewArea: Area = {
  name: 'overview',
  title: 'Overview',
  path: '/',
  group: 'Traffic',
  permission: 'overview',
  pages: [{ path: '/', view: viewOverview }],
  actions: [],
};
