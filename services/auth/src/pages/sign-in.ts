import { type Html, html } from '@tollgate/kit/html';
import type { Settings } from '../config/settings.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { signInWithPassword } from '../sign-in/password.ts';
import { captcha } from './captcha.ts';
import { completeSignIn } from './completion.ts';
import { field, form, notice, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { describeCode } from './problems.ts';
import { providerLinks } from './providers.ts';
import type { Visit } from './visit.ts';

/** Sign-in by password or at a provider. */
export const signInPage: PageDefinition = {
  name: 'sign-in',
  access: 'everyone',
  view: viewSignIn,
  show: (visit) =>
    visit.owner !== undefined && visit.destination.redirectTo === '' && visit.query.again === undefined
      ? visit.redirect('account')
      : undefined,
  limiter: 'token',
  hasCaptcha: true,
  async submit(visit) {
    const {
      context,
      form: { identifier = '', password },
    } = visit;
    const contact =
      identifier.includes('@') || !context.settings.externalPhoneEnabled
        ? { email: identifier }
        : { phone: identifier };
    const aud = requestedAudience(visit.request, context);
    const issued = await signInWithPassword(context, { ...contact, password, aud }, visit.metadata);
    return completeSignIn(visit, issued, 'aal1');
  },
};

function viewSignIn(visit: Visit, { problem = describeCode(visit.query.error_code) }: Outcome): View {
  const { settings } = visit.context;
  const hasPassword = settings.externalEmailEnabled || settings.externalPhoneEnabled;
  const providers = providerLinks(visit, 'sign-in');
  return {
    title: 'Sign in',
    content: html`${problemSummary(problem)}
${problem === undefined && notice(findNotice(visit))}
${visit.owner !== undefined && continueForm(visit, visit.owner.user)}
${providers}
${providers !== undefined && hasPassword && html`<p class="divider">or</p>`}
${hasPassword && passwordForm(visit, { problem, settings })}
${
  !settings.disableSignup &&
  settings.externalEmailEnabled &&
  html`<p class="after">No account yet? <a href="${visit.path('sign-up')}">Create an account</a></p>`
}`,
  };
}

/** What has happened before a redirect to the page. */
function findNotice({ query }: Visit): string | undefined {
  if (query.confirmed !== undefined && query.code !== undefined)
    return 'Your email address is confirmed. You can sign in now.';
  if (query.deleted !== undefined) return 'Your account is deleted.';
  if (query.again !== undefined) return 'Please sign in again to delete the account.';
  return undefined;
}

function passwordForm(
  visit: Visit,
  { problem, settings }: { readonly problem: Outcome['problem']; readonly settings: Settings },
): Html {
  const { externalEmailEnabled: email, externalPhoneEnabled: phone } = settings;
  const label = email && phone ? 'Email address or phone number' : phone ? 'Phone number' : 'Email address';
  return form(visit, {
    action: visit.path('sign-in'),
    content: html`${field(
      {
        name: 'identifier',
        label,
        type: phone ? 'text' : 'email',
        autocomplete: 'username',
        value: visit.form.identifier,
      },
      problem,
    )}
${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' }, problem)}
${email && html`<p class="aside"><a href="${visit.path('recovery')}">Forgot your password?</a></p>`}
${captcha(settings)}
<button>Sign in</button>`,
  });
}

/** For a user who is already signed in here, and comes from an app. */
function continueForm(visit: Visit, user: { readonly email: string; readonly phone: string }): Html {
  const name = user.email || user.phone || 'this account';
  const content = html`<button>Continue as ${name}</button>`;
  return html`${form(visit, { action: visit.path('continue'), content })}
<p class="divider">or use another account</p>`;
}
