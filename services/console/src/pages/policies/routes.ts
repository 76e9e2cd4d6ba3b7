import type { Area } from '../../http/routes.ts';
import { viewObjects } from './list.ts';
import { viewObject } from './object.ts';
import { withXds } from './page.ts';
import { submitTry, viewTry } from './try.ts';
import { viewVersions } from './versions.ts';

const path = '/policies';

const views = {
  [path]: viewObjects,
  [`${path}/try`]: viewTry,
  [`${path}/:kind/:namespace/:name`]: viewObject,
  [`${path}/:kind/:namespace/:name/versions`]: viewVersions,
};

/** Access policies and limits as the xDS server has them. The console changes none. */
export const policiesArea: Area = {
  name: 'policies',
  title: 'Policies',
  path,
  group: 'Traffic',
  permission: 'policies',
  pages: Object.entries(views).map(([page, view]) => ({ path: page, view: withXds(view) })),
  actions: [{ path: `${path}/try`, permission: 'policies', submit: submitTry }],
};
