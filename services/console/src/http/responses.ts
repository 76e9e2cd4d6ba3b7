import { type Html, html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { isPermitted } from '../scopes.ts';
import { csrfField } from '../sign-in/csrf.ts';
import type { Session } from '../sign-in/sessions.ts';
import { hiddenField } from '../ui/form.ts';
import { layout } from '../ui/layout.ts';

/** Scripts and styles only of our own origin, and no inline ones. */
function contentSecurityPolicy(authIssuer: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    // Chromium applies it to redirects, and a form may lead to the sign-in.
    `form-action 'self' ${new URL(authIssuer).origin}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
}

/** A year. @see RFC 6797 §6.1.1 */
const httpsOnlySeconds = 31_536_000;

/** Headers of every response. */
export function securityHeaders({
  authIssuer,
  externalUrl,
}: Pick<Settings, 'authIssuer' | 'externalUrl'>): Readonly<Record<string, string>> {
  return {
    'content-security-policy': contentSecurityPolicy(authIssuer),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
    // Not `no-referrer`, with which browsers send `Origin: null` with forms.
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    ...(externalUrl.startsWith('https:') && {
      'strict-transport-security': `max-age=${httpsOnlySeconds}`,
    }),
  };
}

interface Page {
  /** Undefined before the sign-in. */
  readonly session: Session | undefined;
  readonly url: URL;
  readonly title: string;
  readonly content: Html;
  readonly status: number;
}

/** Sends a whole page. */
export function sendPage(
  { assets, menu }: Context,
  reply: FastifyReply,
  { session, url, title, content, status }: Page,
): FastifyReply {
  const notice = session?.notice;
  if (session !== undefined) session.notice = undefined;
  const document = layout({
    ...{ title, content, assets, notice, path: url.pathname },
    navigation:
      session === undefined
        ? []
        : menu.filter((entry) => isPermitted(session.grantedScopes, entry.permission)),
    account: session === undefined ? html`` : account(session),
  });
  return reply
    .code(status)
    .header('cache-control', 'no-store')
    .type('text/html; charset=utf-8')
    .send(document.toString());
}

function account({ person, csrfToken }: Session): Html {
  return html`<span class="person">${person.name}</span>
<form method="post" action="/sign-out">${hiddenField(csrfField, csrfToken)}<button>Sign out</button></form>`;
}
