import { createHash } from 'node:crypto';
import { type Html, html, trustedHtml } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { finishSignIn, startSignIn } from '../passkeys/sign-in.ts';
import { captcha } from './captcha.ts';
import { completeSignIn } from './completion.ts';
import { form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import type { Visit } from './visit.ts';

/** Whether passkeys work on the pages: credentials are bound to origins. */
function offersPasskeys({ context: { settings } }: Visit): boolean {
  const { origin } = new URL(settings.apiExternalUrl);
  return settings.passkeyEnabled && settings.webAuthnRpOrigins.includes(origin);
}

/** The way to sign in with a passkey on the sign-in page. A CAPTCHA is on a page of its own. */
export function passkeyItem(visit: Visit): readonly Html[] {
  if (!offersPasskeys(visit)) return [];
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
  show: (visit) => (offersPasskeys(visit) ? undefined : visit.redirect('sign-in')),
  limiter: 'passkey',
  hasCaptcha: true,
  async submit(visit) {
    if (!offersPasskeys(visit)) throw errors.passkey_disabled();
    return sendView(visit, viewChallenge(visit, await startSignIn(visit.context, visit.metadata)));
  },
};

/** Signs in with the response of the authenticator. A challenge, which is limited, comes first. */
export const passkeyForm: PageDefinition = {
  name: 'passkey-verify',
  access: 'everyone',
  hasPage: false,
  view: viewRequest,
  async submit(visit) {
    if (!offersPasskeys(visit)) throw errors.passkey_disabled();
    const { challenge_id: challengeId = '', credential = '' } = visit.form;
    const response = { challengeId, credential: parseJson(credential) };
    return completeSignIn(visit, await finishSignIn(visit.context, response, visit.metadata), 'aal1');
  },
};

/** Undefined for another text, which is rejected as a credential. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

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

/**
 * Asks for a passkey, and sends the form with it. The challenge is in the page, so that the policy
 * need not allow requests of scripts.
 *
 * @see https://www.w3.org/TR/webauthn-3/#sctn-parseRequestOptionsFromJSON
 */
const script = `
const [form] = document.forms;
const failure = document.getElementById('failure');
async function askForPasskey() {
  failure.hidden = true;
  try {
    const options = JSON.parse(form.elements.options.value);
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
    form.elements.credential.value = JSON.stringify(await navigator.credentials.get({ publicKey }));
    form.submit();
  } catch {
    failure.hidden = false;
  }
}
form.addEventListener('submit', (event) => {
  event.preventDefault();
  askForPasskey();
});
askForPasskey();
`;
const scriptHash = createHash('sha256').update(script).digest('base64');

function viewChallenge(
  visit: Visit,
  { id, options }: { readonly id: string; readonly options: object },
): View {
  const { texts } = visit;
  const content = html`<input type="hidden" name="challenge_id" value="${id}">
<input type="hidden" name="options" value="${JSON.stringify(options)}" disabled>
<input type="hidden" name="credential">
<button>${texts.signInWithPasskey}</button>`;
  return {
    title: texts.signInWithPasskey,
    scriptHashes: [scriptHash],
    content: html`<noscript><p class="problem">${texts.passkeyNeedsScript}</p></noscript>
<p>${texts.passkeyText}</p>
<div class="summary" id="failure" role="alert" hidden><p>${texts.passkeyFailed}</p></div>
${form(visit, { action: visit.path('passkey-verify'), content })}
<p class="after"><a href="${visit.path('sign-in')}">${texts.backToSignIn}</a></p>
<script>${trustedHtml(script)}</script>`,
  };
}
