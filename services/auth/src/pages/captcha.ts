import { type Html, html } from '@tollgate/kit/html';
import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { toObject } from '../outbound/post-form.ts';
import type { Visit } from './visit.ts';

interface Widget {
  readonly script: string;
  /** Class of the element that the script replaces. */
  readonly className: string;
  /** Form field with the token. */
  readonly field: string;
  /** CSP sources. */
  readonly hosts: readonly string[];
}

const widgets: Readonly<Record<string, Widget>> = {
  /** @see https://docs.hcaptcha.com/#content-security-policy-settings */
  hcaptcha: {
    script: 'https://js.hcaptcha.com/1/api.js',
    className: 'h-captcha',
    field: 'h-captcha-response',
    hosts: ['https://hcaptcha.com', 'https://*.hcaptcha.com'],
  },
  /** @see https://developers.cloudflare.com/turnstile/reference/content-security-policy/ */
  turnstile: {
    script: 'https://challenges.cloudflare.com/turnstile/v0/api.js',
    className: 'cf-turnstile',
    field: 'cf-turnstile-response',
    hosts: ['https://challenges.cloudflare.com'],
  },
};

/** CSP sources of the widget: the only script of the pages. */
export function captchaSources({ captchaProvider }: Pick<Settings, 'captchaProvider'>): readonly string[] {
  return widgets[captchaProvider]?.hosts ?? [];
}

/** The widget of a form; nothing if CAPTCHA is disabled. */
export function captcha({ context, texts }: Visit): Html | undefined {
  const { captchaEnabled, captchaProvider, pagesCaptchaSiteKey } = context.settings;
  const widget = widgets[captchaProvider];
  if (!captchaEnabled || widget === undefined) return undefined;
  return html`<div class="${widget.className}" data-sitekey="${pagesCaptchaSiteKey}"></div>
<script src="${widget.script}" async defer></script>
<noscript><p class="problem">${texts.needsScript}</p></noscript>`;
}

/** Passes the token of the widget on under the name that the API reads. */
export function useCaptchaResponse(request: FastifyRequest): void {
  const fields = toObject(request.body);
  const token = Object.values(widgets)
    .map(({ field }) => fields[field])
    .find((value) => typeof value === 'string' && value !== '');
  if (token !== undefined) request.body = { ...fields, captcha_token: token };
}
