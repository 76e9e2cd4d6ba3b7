import { hash } from 'node:crypto';
import { type Html, html, trustedHtml } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { denyCors } from './api.ts';
import { findLogo } from './page-logo.ts';
import { stylesheet } from './page-style.ts';
import { pagePath } from './page-url.ts';

type Branding = Pick<
  Settings,
  | 'pagesName'
  | 'pagesLogoUrl'
  | 'pagesLogoFile'
  | 'pagesColor'
  | 'pagesColorDark'
  | 'siteUrl'
  | 'apiExternalUrl'
>;

export interface Page {
  /** BCP 47 tag of the texts. */
  readonly language: string;
  /** Also the heading. */
  readonly title: string;
  readonly content: Html;
  /** Default 200. */
  readonly status?: number;
  /**
   * CSP sources that the response to a form of the page may redirect to, besides this server.
   * Chromium applies `form-action` to redirects.
   *
   * @see https://www.w3.org/TR/CSP3/#directive-form-action
   */
  readonly formTargets?: readonly string[];
  /** CSP sources of a CAPTCHA widget. */
  readonly widget?: readonly string[];
  /** CSP sources of images in the content. */
  readonly imageSources?: readonly string[];
  /** SHA-256 digests in base64 of scripts in the content. */
  readonly scriptHashes?: readonly string[];
  /** Whether the page is on a host without the style sheet, and has it in itself. Default false. */
  readonly hasOwnStyle?: boolean;
  /** Says that the content starts with what is wrong. */
  readonly titlePrefix?: string | undefined;
  /** Has sections, and is wider. */
  readonly isWide?: boolean;
  /** Whether the URL contains a secret, which requests for the style sheet must not repeat. */
  readonly hasSecretUrl?: boolean;
}

/** Features that no page uses. @see https://www.w3.org/TR/permissions-policy/ */
const unusedFeatures = ['camera', 'display-capture', 'geolocation', 'microphone', 'payment', 'usb']
  .map((feature) => `${feature}=()`)
  .join(', ');

/** A year. @see RFC 6797 §6.1.1 https://www.rfc-editor.org/rfc/rfc6797#section-6.1.1 */
const httpsOnlySeconds = 31_536_000;

/** Sends a page with the layout and the security headers of all pages. */
export function sendPage(reply: FastifyReply, branding: Branding, page: Page): FastifyReply {
  // Pages are for people: scripts of other sites have no use for them.
  denyCors(reply);
  const { headers, body } = renderPage(branding, page);
  return reply
    .code(page.status ?? 200)
    .headers(headers)
    .send(body);
}

/** The headers and the content of a page. */
export function renderPage(branding: Branding, page: Page) {
  const headers: Record<string, string> = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': contentSecurityPolicy(branding, page),
    // Elsewhere not `no-referrer`, with which browsers send `Origin: null` with forms.
    'referrer-policy': page.hasSecretUrl === true ? 'no-referrer' : 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': unusedFeatures,
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    ...(branding.apiExternalUrl.startsWith('https:') && {
      'strict-transport-security': `max-age=${httpsOnlySeconds}`,
    }),
  };
  return { headers, body: layout(branding, page).toString() };
}

function contentSecurityPolicy(
  branding: Branding,
  { formTargets = [], widget = [], imageSources = [], scriptHashes = [], hasOwnStyle = false }: Page,
): string {
  const logo = findLogo(branding);
  const images = [...(logo === undefined ? [] : [logo.source]), ...imageSources];
  const scripts = [...widget, ...scriptHashes.map((hash) => `'sha256-${hash}'`)];
  return [
    "default-src 'none'",
    [hasOwnStyle ? `style-src 'sha256-${ownStyle(branding).digest}'` : "style-src 'self'", ...widget].join(
      ' ',
    ),
    ...(images.length === 0 ? [] : [['img-src', ...images].join(' ')]),
    ...(scripts.length === 0 ? [] : [['script-src', ...scripts].join(' ')]),
    ...(widget.length === 0
      ? []
      : ['frame-src', 'connect-src'].map((directive) => [directive, ...widget].join(' '))),
    ["form-action 'self'", ...formTargets].join(' '),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
}

function ownStyle(branding: Branding) {
  const { css } = stylesheet(branding);
  return { css, digest: hash('sha256', css, 'base64') };
}

function layout(
  branding: Branding,
  { language, title, content, titlePrefix, isWide, hasOwnStyle = false }: Page,
): Html {
  const name = branding.pagesName || webHost(branding.siteUrl);
  const logo = findLogo(branding);
  const brand = logo === undefined ? html`${name}` : html`<img src="${logo.url}" alt="${name}" height="48">`;
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${titlePrefix}${title}${name !== '' && ` · ${name}`}</title>
${hasOwnStyle ? html`<style>${trustedHtml(ownStyle(branding).css)}</style>` : html`<link rel="stylesheet" href="${stylePath(branding)}">`}
</head>
<body>
<main${isWide === true && html` class="wide"`}>
<p class="brand">${brand}</p>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`;
}

/** Empty for the URL of an app, such as `myapp://login`. */
function webHost(url: string): string {
  return /^https?:/i.test(url) ? new URL(url).host : '';
}

/** Changes with the content, which browsers keep. */
function stylePath(settings: Branding): string {
  const { version } = stylesheet(settings);
  return `${pagePath(settings, 'style.css')}?v=${version}`;
}
