import { html } from '@tollgate/kit/html';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { sendPage } from '../http/html-page.ts';
import { parseAcceptLanguage } from '../i18n/languages.ts';
import { chooseTexts } from '../i18n/texts/texts.ts';

/**
 * A page whose link returns to a program of this device. Without it, any program could open
 * `/authorize`, and get a session from a provider that does not ask the user.
 *
 * @see RFC 8252 §8.6 https://www.rfc-editor.org/rfc/rfc8252#section-8.6
 */
export function sendDevicePage(
  settings: Settings,
  url: string,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): FastifyReply {
  const preferred = parseAcceptLanguage(request.headers['accept-language'] ?? '');
  const { language, texts } = chooseTexts(preferred, settings);
  const { title, button } = texts.linkPage;
  return sendPage(reply, settings, {
    language,
    title,
    hasSecretUrl: true,
    content: html`<p>${texts.returnToDevice}</p>
<p class="hint">${new URL(url).host}</p>
<p><a class="button" href="${url}">${button}</a></p>`,
  });
}
