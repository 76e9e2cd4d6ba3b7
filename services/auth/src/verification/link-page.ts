import { html } from '@tollgate/kit/html';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendPage } from '../http/html-page.ts';
import { parseAcceptLanguage } from '../i18n/languages.ts';
import type { MailKind } from '../i18n/texts/mail-kinds.ts';
import { chooseTexts, type Texts } from '../i18n/texts/texts.ts';
import type { VerificationContext } from './context.ts';

/** Mails by `type` of their link. */
const mails: Readonly<Record<string, MailKind>> = {
  signup: 'CONFIRMATION',
  invite: 'INVITE',
  recovery: 'RECOVERY',
  magiclink: 'MAGIC_LINK',
  email_change: 'EMAIL_CHANGE',
};

/**
 * Shows a page whose button does what a link was sent for. The page does not use the token: mail
 * scanners open links, and would spend it. The form has no action, so it is posted to the URL of
 * the page, whatever prefix a gateway adds.
 */
export function sendLinkPage(
  { settings }: VerificationContext,
  link: { readonly type: string; readonly tokenHash: string; readonly redirectTo: string },
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): FastifyReply {
  const preferred = parseAcceptLanguage(request.headers['accept-language'] ?? '');
  const { language, texts } = chooseTexts(preferred, settings);
  const { title, button } = labels(texts, link.type);
  return sendPage(reply, settings, {
    language,
    title,
    hasSecretUrl: true,
    // The whole scheme: the site may redirect further, to `www` for example.
    formTargets: [link.redirectTo.slice(0, link.redirectTo.indexOf(':') + 1)],
    content: html`<form method="post">
<input type="hidden" name="confirm_link" value="true">
<input type="hidden" name="type" value="${link.type}">
<input type="hidden" name="token" value="${link.tokenHash}">
<input type="hidden" name="redirect_to" value="${link.redirectTo}">
<p>${texts.linkPage.text}</p>
<button>${button}</button>
</form>`,
  });
}

function labels({ linkPage, mails: texts }: Texts, type: string) {
  const mail = Object.hasOwn(mails, type) ? mails[type] : undefined;
  return { ...linkPage, ...(mail && texts[mail]) };
}
