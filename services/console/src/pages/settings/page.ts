import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { tabs } from '../../ui/tabs.ts';

const pages = [
  { title: 'Settings', path: '/settings' },
  { title: 'Signing keys', path: '/settings/keys' },
];

/** A page of the area. */
export function settingsPage({ url }: Visit, title: string, content: Html): View {
  return { title, content: html`${tabs('Settings', pages, url.pathname)}${content}` };
}
