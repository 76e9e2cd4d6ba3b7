import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { finishSignIn, startSignIn } from '../passkeys/sign-in.ts';
import { captcha } from './captcha.ts';
import { ceremonyView, offersPasskeys, readPasskeyResponse } from './ceremony.ts';
import { completeSignIn } from './completion.ts';
import { form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import type { Visit } from './visit.ts';

/** The way to sign in with a passkey on the sign-in page. A CAPTCHA is on a page of its own. */
export function passkeyItem(visit: Visit): readonly Html[] {
  if (!offersPasskeys(visit.context.settings)) return [];
  const { signInWithPasskey: label } = visit.texts;
  const action = visit.path('passkey');
  if (visit.context.settings.captchaEnabled)
    return [html`<li><a class="button" href="${action}">${label}</a></li>`];
  return [
    html`<li>${form(visit, { action, content: html`<button class="secondary">${label}</button>` })}</li>`,
  ];
}

/** Starts the sign-in with a passkey: the response to the form has the script that asks for it. */
export const passkeyPage: PageDefinition = {
  name: 'passkey',
  access: 'everyone',
  view: viewRequest,
  show: (visit) => (offersPasskeys(visit.context.settings) ? undefined : visit.redirect('sign-in')),
  limiter: 'passkey',
  hasCaptcha: true,
  async submit(visit) {
    if (!offersPasskeys(visit.context.settings)) throw errors.passkey_disabled();
    const ceremony = {
      kind: 'get',
      challenge: await startSignIn(visit.context, visit.metadata),
      title: visit.texts.signInWithPasskey,
      text: visit.texts.passkeyText,
      failure: visit.texts.passkeyFailed,
      action: visit.path('passkey-verify'),
      after: html`<p class="after"><a href="${visit.path('sign-in')}">${visit.texts.backToSignIn}</a></p>`,
    } as const;
    return sendView(visit, ceremonyView(visit, ceremony));
  },
};

/** Signs in with the response of the authenticator. A challenge, which is limited, comes first. */
export const passkeyForm: PageDefinition = {
  name: 'passkey-verify',
  access: 'everyone',
  hasPage: false,
  view: viewRequest,
  async submit(visit) {
    if (!offersPasskeys(visit.context.settings)) throw errors.passkey_disabled();
    const response = readPasskeyResponse(visit);
    return completeSignIn(visit, await finishSignIn(visit.context, response, visit.metadata));
  },
};

function viewRequest(visit: Visit, { problem }: Outcome): View {
  const { texts } = visit;
  const content = html`${captcha(visit)}
<button>${texts.signInWithPasskey}</button>`;
  return {
    title: texts.signInWithPasskey,
    content: html`${problemSummary(problem)}
<p>${texts.passkeyText}</p>
${form(visit, { action: visit.path('passkey'), content })}
<p class="after"><a href="${visit.path('sign-in')}">${texts.backToSignIn}</a></p>`,
  };
}
