import { html } from '@tollgate/kit/html';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { describePolicy } from '../passwords/passwords.ts';
import { signUp } from '../sign-up/sign-up.ts';
import { captcha } from './captcha.ts';
import { completeSignIn } from './completion.ts';
import { field, form, notice, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { providerLinks } from './providers.ts';
import type { Visit } from './visit.ts';

/** Sign-up by email and password. */
export const signUpPage: PageDefinition = {
  name: 'sign-up',
  access: 'everyone',
  view: viewSignUp,
  limiter: 'otp',
  hasCaptcha: true,
  async submit(visit) {
    const { context, form: fields, destination, metadata } = visit;
    const { email = '', password, name = '' } = fields;
    if (email === '') throw errors.validation_failed({ message: 'Please enter your email address.' });
    const { redirectTo } = destination;
    const input = {
      ...{ email, password },
      // The code of a link to this server is not exchanged: the person signs in with the password.
      challenge: redirectTo === '' ? visit.challenge('confirmation') : destination.challenge,
      data: name.trim() === '' ? {} : { full_name: name.trim() },
      // The link in the mail leads to the app, or here to sign in.
      redirectTo: redirectTo === '' ? visit.url('sign-in', { confirmed: 'true' }) : redirectTo,
      aud: requestedAudience(visit.request, context),
    };
    const result = await signUp(context, input, metadata);
    return result.kind === 'session'
      ? completeSignIn(visit, result.session, 'aal1')
      : visit.redirect('sign-up', { sent: 'true' });
  },
};

function viewSignUp(visit: Visit, { problem }: Outcome): View {
  const { settings } = visit.context;
  if (visit.query.sent !== undefined && problem === undefined)
    return {
      title: 'Check your email',
      content: html`${notice('We have sent you an email with a link. Follow it to confirm your address.')}
<p class="after">No email? Look into the spam folder, or <a href="${visit.path('sign-up')}">try again</a>.</p>
<p class="after"><a href="${visit.path('sign-in')}">Back to sign-in</a></p>`,
    };
  return {
    title: 'Create an account',
    content: html`${problemSummary(problem)}
${settings.disableSignup ? notice('New accounts cannot be created here.') : signUpForm(visit, { problem, settings })}
<p class="after">Already have an account? <a href="${visit.path('sign-in')}">Sign in</a></p>`,
  };
}

function signUpForm(
  visit: Visit,
  { problem, settings }: { readonly problem: Outcome['problem']; readonly settings: Settings },
) {
  const { form: fields } = visit;
  const providers = providerLinks(visit, 'sign-in');
  const content = html`${field(
    { name: 'name', label: 'Name (optional)', autocomplete: 'name', value: fields.name, isOptional: true },
    problem,
  )}
${field(
  { name: 'email', label: 'Email address', type: 'email', autocomplete: 'email', value: fields.email },
  problem,
)}
${newPasswordField(settings, { label: 'Password', problem })}
${captcha(settings)}
<button>Create account</button>`;
  return html`${providers}
${providers !== undefined && settings.externalEmailEnabled && html`<p class="divider">or</p>`}
${settings.externalEmailEnabled && form(visit, { action: visit.path('sign-up'), content })}`;
}

/** A field for a new password, with the policy. */
export function newPasswordField(
  settings: Settings,
  { label, problem }: { readonly label: string; readonly problem: Outcome['problem'] },
) {
  return field(
    {
      name: 'password',
      label,
      type: 'password',
      autocomplete: 'new-password',
      hint: describePolicy(settings),
    },
    problem,
  );
}
