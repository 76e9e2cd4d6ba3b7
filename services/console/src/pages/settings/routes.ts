import type { Area } from '../../http/routes.ts';
import { viewKeys } from './keys.ts';
import { viewSettings } from './settings.ts';

/** The settings in force, and the signing keys. */
export const settingsArea: Area = {
  name: 'settings',
  title: 'Settings',
  path: '/settings',
  group: 'Operation',
  permission: 'settings',
  pages: [
    { path: '/settings', view: viewSettings },
    { path: '/settings/keys', view: viewKeys },
  ],
  actions: [],
};
