import { type Html, html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { signInWithPassword } from '../sign-in/password.ts';
import { hasOtherAccounts } from './browser-accounts.ts';
import { captcha } from './captcha.ts';
import { codeContacts } from './code.ts';
import { completeSignIn, continueAs } from './completion.ts';
import { field, form, notice, problemSummary } from './forms.ts';
import { type ContactKinds, identifierField, readIdentifier } from './identifier.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { passkeyItem } from './passkey.ts';
import { describeCode } from './problems.ts';
import { providerItems, wayList } from './providers.ts';
import type { Visit } from './visit.ts';

/** Sign-in by password or at a provider. */
export const signInPage: PageDefinition = {
  name: 'sign-in',
  access: 'everyone',
  view: viewSignIn,
  show: continueSignedIn,
  limiter: 'token',
  hasCaptcha: true,
  async submit(visit) {
    const {
      context,
      form: { identifier = '', password },
    } = visit;
    const contact = readIdentifier(identifier, passwordContacts(context.settings));
    const aud = requestedAudience(visit.request, context);
    const issued = await signInWithPassword(context, { ...contact, password, aud }, visit.metadata);
    return completeSignIn(visit, issued);
  },
};

/** Users who are signed in here see no form, unless another account may be meant. */
async function continueSignedIn(visit: Visit): Promise<FastifyReply | undefined> {
  const { owner, query, destination } = visit;
  if ([query.again, query.other, query.error_code].some((value) => value !== undefined)) return undefined;
  if (query.prompt === 'login' || (owner === undefined && !hasOtherAccounts(visit))) return undefined;
  if (destination.redirectTo === '' && owner !== undefined) return visit.redirect(visit.home);
  if (owner === undefined || query.prompt === 'select_account' || hasOtherAccounts(visit))
    return visit.redirect('accounts');
  const { login_hint: hint = '' } = destination.hints;
  const isOther = hint !== '' && ![owner.user.email, owner.user.phone].includes(hint.toLowerCase());
  return isOther ? undefined : continueAs(visit, owner);
}

async function viewSignIn(
  visit: Visit,
  { problem = describeCode(visit.query.error_code, visit.texts) }: Outcome,
): Promise<View> {
  const { texts } = visit;
  const { settings } = visit.context;
  const hasPassword = settings.externalEmailEnabled || settings.externalPhoneEnabled;
  const ways = wayList([
    ...(await providerItems(visit, 'sign-in')),
    ...codeItem(visit),
    ...passkeyItem(visit),
  ]);
  return {
    title: texts.signIn,
    ...(problem && { problem }),
    content: html`${problemSummary(problem)}
${problem?.code === 'email_not_confirmed' && html`<p><a href="${visit.path('resend')}">${texts.sendAgain}</a></p>`}
${problem === undefined && notice(findNotice(visit))}
${ways}
${ways !== undefined && hasPassword && html`<p class="divider">${texts.or}</p>`}
${hasPassword && passwordForm(visit, { problem, settings })}
${
  !settings.disableSignup &&
  settings.externalEmailEnabled &&
  html`<p class="after">${texts.noAccount} <a href="${visit.path('sign-up')}">${texts.createAccount}</a></p>`
}`,
  };
}

function codeItem(visit: Visit): readonly Html[] {
  if (codeContacts(visit) === undefined) return [];
  return [html`<li><a class="button" href="${visit.path('code')}">${visit.texts.signInWithCode}</a></li>`];
}

/** Finds the event before a redirect to the page. */
function findNotice({ query, texts }: Visit): string | undefined {
  if (query.confirmed !== undefined && query.code !== undefined) return texts.emailConfirmed;
  if (query.deleted !== undefined) return texts.accountDeleted;
  if (query.again !== undefined) return texts.signInToContinue;
  return undefined;
}

function passwordContacts({
  externalEmailEnabled: email,
  externalPhoneEnabled: phone,
}: Settings): ContactKinds {
  return { email, phone };
}

function passwordForm(
  visit: Visit,
  { problem, settings }: { readonly problem: Outcome['problem']; readonly settings: Settings },
): Html {
  const { texts, destination } = visit;
  const kinds = passwordContacts(settings);
  const value = visit.form.identifier ?? destination.hints.login_hint;
  return form(visit, {
    action: visit.path('sign-in'),
    content: html`${identifierField(visit, { ...kinds, value, problem })}
${field({ name: 'password', label: texts.password, type: 'password', autocomplete: 'current-password' }, problem)}
${kinds.email && html`<p class="aside"><a href="${visit.path('recovery')}">${texts.forgotPassword}</a></p>`}
${captcha(visit)}
<button>${texts.signIn}</button>`,
  });
}
