import { html } from '@tollgate/kit/html';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { passwordRule } from '../passwords/passwords.ts';
import { signUp } from '../sign-up/sign-up.ts';
import { captcha } from './captcha.ts';
import { completeSignIn } from './completion.ts';
import { field, form, notice, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { providerItems, wayList } from './providers.ts';
import type { Visit } from './visit.ts';

/** Sign-up by email and password. */
export const signUpPage: PageDefinition = {
  name: 'sign-up',
  access: 'everyone',
  view: viewSignUp,
  limiter: 'otp',
  hasCaptcha: true,
  async submit(visit) {
    const { context, form: fields, metadata } = visit;
    const { email = '', password, name = '' } = fields;
    if (email === '') throw errors.validation_failed({ message: visit.texts.enterEmail });
    const input = {
      ...{ email, password },
      ...confirmationTarget(visit),
      data: name.trim() === '' ? {} : { full_name: name.trim() },
      aud: requestedAudience(visit.request, context),
    };
    const result = await signUp(context, input, metadata);
    return result.kind === 'session'
      ? completeSignIn(visit, result.session)
      : visit.redirect('sign-up', { sent: 'true' });
  },
};

/** Where the link of a confirmation leads: to the app, or here to sign in. */
export function confirmationTarget(visit: Visit) {
  const { redirectTo, challenge } = visit.destination;
  // The code of a link to this server is not exchanged: the person signs in with the password.
  return redirectTo === ''
    ? { challenge: visit.challenge('confirmation'), redirectTo: visit.url('sign-in', { confirmed: 'true' }) }
    : { challenge, redirectTo };
}

async function viewSignUp(visit: Visit, { problem }: Outcome): Promise<View> {
  const { texts } = visit;
  const { settings } = visit.context;
  if (visit.query.sent !== undefined && problem === undefined)
    return {
      title: texts.checkEmail,
      content: html`${notice(texts.signUpSent)}
<p class="after">${texts.noEmail} <a href="${visit.path('resend')}">${texts.sendAgain}</a></p>
<p class="after"><a href="${visit.path('sign-in')}">${texts.backToSignIn}</a></p>`,
    };
  return {
    title: texts.createAccount,
    content: html`${problemSummary(problem)}
${settings.disableSignup ? notice(texts.errors.signup_disabled) : await signUpForm(visit, { problem, settings })}
<p class="after">${texts.haveAccount} <a href="${visit.path('sign-in')}">${texts.signIn}</a></p>`,
  };
}

async function signUpForm(
  visit: Visit,
  { problem, settings }: { readonly problem: Outcome['problem']; readonly settings: Settings },
) {
  const { form: fields, texts } = visit;
  const providers = wayList(await providerItems(visit, 'sign-in'));
  const content = html`${field(
    { name: 'name', label: texts.nameOptional, autocomplete: 'name', value: fields.name, isOptional: true },
    problem,
  )}
${field(
  { name: 'email', label: texts.emailAddress, type: 'email', autocomplete: 'email', value: fields.email },
  problem,
)}
${newPasswordField(visit, { label: texts.password, problem })}
${captcha(visit)}
<button>${texts.createAccount}</button>`;
  return html`${providers}
${providers !== undefined && settings.externalEmailEnabled && html`<p class="divider">${texts.or}</p>`}
${settings.externalEmailEnabled && form(visit, { action: visit.path('sign-up'), content })}`;
}

/** A field for a new password, with the policy. */
export function newPasswordField(
  { context, texts }: Visit,
  { label, problem }: { readonly label: string; readonly problem: Outcome['problem'] },
) {
  const { length, sets } = passwordRule(context.settings);
  return field(
    {
      name: 'password',
      label,
      type: 'password',
      autocomplete: 'new-password',
      hint: texts.passwordRule(length, sets),
    },
    problem,
  );
}
