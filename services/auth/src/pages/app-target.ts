import { type Html, html } from '@tollgate/kit/html';
import type { Settings } from '../config/settings.ts';
import type { Visit } from './visit.ts';

const webSchemes = ['http:', 'https:'];

/**
 * Whether only the app of a target receives what is sent there: https, or the site. Any program of
 * a device can listen on a loopback address, or claim a scheme.
 *
 * @see RFC 8252 §8.6 https://www.rfc-editor.org/rfc/rfc8252#section-8.6
 */
export function isKnownApp(target: string, { siteUrl }: Pick<Settings, 'siteUrl'>): boolean {
  const url = URL.parse(target);
  if (url === null || !webSchemes.includes(url.protocol)) return false;
  return url.protocol === 'https:' || url.origin === URL.parse(siteUrl)?.origin;
}

/** Names the app to which the browser goes, before the user continues. */
export function appNotice({ destination, context, texts }: Visit): Html | undefined {
  const { redirectTo } = destination;
  if (redirectTo === '') return undefined;
  const url = URL.parse(redirectTo);
  const isWeb = url !== null && webSchemes.includes(url.protocol);
  // The host in the URL of another scheme is any text.
  const place = isWeb ? url.host : redirectTo.slice(0, redirectTo.indexOf(':') + 1);
  return html`<p class="hint">${texts.consentReturn(place)}</p>
${!isKnownApp(redirectTo, context.settings) && html`<p class="hint">${texts.consentDevice}</p>`}`;
}
