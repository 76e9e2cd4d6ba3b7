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

/** The host of a URL, or its scheme: the host of one that is not of the web is any text. */
export function describeTarget(target: string): string {
  const url = URL.parse(target);
  const isWeb = url !== null && webSchemes.includes(url.protocol);
  return isWeb ? url.host : target.slice(0, target.indexOf(':') + 1);
}

/** Names the app to which the browser goes, before the user continues. */
export function appNotice({ destination, context, texts }: Visit): Html | undefined {
  const { redirectTo } = destination;
  if (redirectTo === '') return undefined;
  return html`<p class="hint">${texts.consentReturn(describeTarget(redirectTo))}</p>
${!isKnownApp(redirectTo, context.settings) && html`<p class="hint">${texts.consentDevice}</p>`}`;
}
