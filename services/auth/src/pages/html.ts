import { createHash } from 'node:crypto';
import { type Html, html, trustedHtml } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import type { Settings } from '../config/settings.ts';

type Branding = Pick<Settings, 'pagesName' | 'pagesLogoUrl' | 'pagesColor' | 'siteUrl'>;

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
}

/** Sends a page with the layout and the security headers of all pages. It needs no scripts. */
export function sendPage(reply: FastifyReply, branding: Branding, page: Page): FastifyReply {
  const style = stylesheet(branding.pagesColor);
  // Pages are for people: scripts of other sites have no use for them.
  for (const header of ['access-control-allow-origin', 'access-control-allow-credentials'])
    reply.removeHeader(header);
  return reply
    .code(page.status ?? 200)
    .type('text/html; charset=utf-8')
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': contentSecurityPolicy(style, branding, page),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    .send(layout(style, branding, page).toString());
}

function contentSecurityPolicy(style: string, { pagesLogoUrl }: Branding, { formTargets = [] }: Page) {
  const hash = createHash('sha256').update(style).digest('base64');
  return [
    "default-src 'none'",
    `style-src 'sha256-${hash}'`,
    ...(pagesLogoUrl === '' ? [] : [`img-src ${new URL(pagesLogoUrl).origin}`]),
    ["form-action 'self'", ...formTargets].join(' '),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
}

function layout(style: string, branding: Branding, { language, title, content }: Page): Html {
  const name = branding.pagesName || webHost(branding.siteUrl);
  const logo =
    branding.pagesLogoUrl === ''
      ? html`${name}`
      : html`<img src="${branding.pagesLogoUrl}" alt="${name}" height="48">`;
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}${name !== '' && ` · ${name}`}</title>
<style>${trustedHtml(style)}</style>
</head>
<body>
<main>
<p class="brand">${logo}</p>
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

function stylesheet(color: string): string {
  return `
:root { color-scheme: light dark; --back: #f4f4f5; --card: #fff; --text: #18181b; --line: #71717a }
@media (prefers-color-scheme: dark) { :root { --back: #18181b; --card: #27272a; --text: #f4f4f5; --line: #a1a1aa } }
* { box-sizing: border-box }
body { margin: 0; padding: 1rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 26rem; margin: 10vh auto 0; padding: 2rem; background: var(--card); border-radius: .75rem; overflow-wrap: anywhere }
h1 { margin: 0 0 1rem; font-size: 1.375rem; line-height: 1.25 }
.brand { margin: 0 0 1.5rem; font-weight: 600 }
.brand img { max-width: 100%; vertical-align: middle }
button { width: 100%; min-height: 3rem; padding: .5rem 1rem; border: 1px solid var(--line); border-radius: .5rem; background: ${color}; color: ${textColorOn(color)}; font: inherit; font-weight: 600; cursor: pointer }
:focus-visible { outline: 3px solid var(--text); outline-offset: 2px }
`;
}

/**
 * Black or white, whichever has the higher contrast, which is at least 4.5 : 1.
 *
 * @param color `#rrggbb`
 * @see https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
 */
function textColorOn(color: string): '#000000' | '#ffffff' {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? '#000000' : '#ffffff';
}
