import { html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import type { Context } from '../context.ts';
import { sendPage } from './html.ts';

interface PageText {
  readonly title: string;
  readonly button: string;
}

const texts: Readonly<Record<string, PageText>> = {
  signup: { title: 'Confirm your email address', button: 'Confirm email address' },
  invite: { title: 'You have been invited', button: 'Accept the invitation' },
  recovery: { title: 'Reset your password', button: 'Reset password' },
  magiclink: { title: 'Sign in', button: 'Sign in' },
  email_change: { title: 'Confirm your new email address', button: 'Confirm the change' },
};
const otherText: PageText = { title: 'Sign in', button: 'Continue' };

/**
 * Shows a page whose button does what a link was sent for. The page does not use the token: mail
 * scanners open links, and would spend it. The form has no action, so it is posted to the URL of
 * the page, whatever prefix a gateway adds.
 */
export function sendLinkPage(
  reply: FastifyReply,
  { settings }: Context,
  link: { readonly type: string; readonly tokenHash: string; readonly redirectTo: string },
): FastifyReply {
  const { title, button } = (Object.hasOwn(texts, link.type) && texts[link.type]) || otherText;
  return sendPage(reply, settings, {
    language: 'en',
    title,
    // The whole scheme: the site may redirect further, to `www` for example.
    formTargets: [link.redirectTo.slice(0, link.redirectTo.indexOf(':') + 1)],
    content: html`<form method="post">
<input type="hidden" name="confirm_link" value="true">
<input type="hidden" name="type" value="${link.type}">
<input type="hidden" name="token" value="${link.tokenHash}">
<input type="hidden" name="redirect_to" value="${link.redirectTo}">
<p>Press the button to continue.</p>
<button>${button}</button>
</form>`,
  });
}
