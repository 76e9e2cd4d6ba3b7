import { html } from '@tollgate/kit/html';
import { requestedAudience } from '../http/request-metadata.ts';
import { resend } from '../sign-in/otp.ts';
import { captcha } from './captcha.ts';
import { accountEmailField, form, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { confirmationTarget } from './sign-up.ts';
import type { Visit } from './visit.ts';

/** Sends the mail that confirms a sign-up again. */
export const resendPage: PageDefinition = {
  name: 'resend',
  access: 'everyone',
  view: viewResend,
  limiter: 'otp',
  hasCaptcha: true,
  async submit(visit) {
    const { context, form: fields, metadata } = visit;
    const aud = requestedAudience(visit.request, context);
    const input = { type: 'signup', email: fields.email, ...confirmationTarget(visit), aud };
    await resend(context, input, metadata);
    return visit.redirect('sign-up', { sent: 'true' });
  },
};

function viewResend(visit: Visit, { problem }: Outcome): View {
  const { texts } = visit;
  const content = html`${accountEmailField(visit, problem)}
${captcha(visit)}
<button>${texts.sendLink}</button>`;
  return {
    title: texts.sendAgain,
    content: html`${problemSummary(problem)}
<p>${texts.sendAgainText}</p>
${form(visit, { action: visit.path('resend'), content })}
<p class="after"><a href="${visit.path('sign-in')}">${texts.backToSignIn}</a></p>`,
  };
}
