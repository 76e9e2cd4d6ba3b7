import type { Area } from '../../http/routes.ts';
import { submitCandidate, viewCandidate } from './view.ts';

const path = '/what-if';

/** Compares limits with the keys of the last hour. */
export const whatIfArea: Area = {
  name: 'what-if',
  title: 'What if',
  path,
  group: 'Traffic',
  permission: 'what-if',
  pages: [{ path, view: viewCandidate }],
  actions: [{ path, permission: 'what-if', submit: submitCandidate }],
};
