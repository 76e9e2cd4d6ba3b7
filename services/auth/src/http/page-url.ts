import type { Settings } from '../config/settings.ts';

/** Path of a page as browsers see it, which may have a prefix that a gateway removes. */
export function pagePath(settings: Pick<Settings, 'apiExternalUrl'>, name: string): string {
  return `${new URL(settings.apiExternalUrl).pathname.replace(/\/+$/, '')}/pages/${name}`;
}

/** Absolute form of `pagePath`. */
export function pageUrl(settings: Pick<Settings, 'apiExternalUrl'>, name: string): string {
  return new URL(pagePath(settings, name), settings.apiExternalUrl).href;
}
