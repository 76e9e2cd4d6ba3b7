import { isAppError } from '@tollgate/kit/errors';
import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { sendOtp } from '../sign-in/otp.ts';
import { verify } from '../verification/verify.ts';
import { captcha } from './captcha.ts';
import { completeSignIn } from './completion.ts';
import { form, notice, problemSummary, readCode, sentCodeField } from './forms.ts';
import { type ContactKinds, identifierField, readIdentifier } from './identifier.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { Problem } from './problems.ts';
import { verifierPurpose } from './providers.ts';
import { keepTyped, takeTyped } from './typed.ts';
import type { Visit } from './visit.ts';

/** The contacts to which codes for the sign-in are sent; undefined for none. */
export function codeContacts({ context: { settings, hooks } }: Visit): ContactKinds | undefined {
  const email = settings.externalEmailEnabled && settings.externalEmailMagicLinkEnabled;
  const sendsMessages = settings.smsProvider !== '' || hooks.enabled.has('SEND_SMS');
  const phone = settings.externalPhoneEnabled && sendsMessages;
  return email || phone ? { email, phone } : undefined;
}

/** Sign-in without a password: sends a code, and by mail a link as well. */
export const codePage: PageDefinition = {
  name: 'code',
  access: 'everyone',
  view: viewCode,
  show: (visit) => (codeContacts(visit) === undefined ? visit.redirect('sign-in') : undefined),
  limiter: 'otp',
  hasCaptcha: true,
  async submit(visit) {
    const { context, metadata } = visit;
    const contact = readContact(visit);
    const input = {
      ...contact,
      ...linkTarget(visit),
      createUser: !context.settings.disableSignup,
      aud: requestedAudience(visit.request, context),
    };
    await sendOtp(context, input, metadata).catch((error: unknown) => {
      if (!isAppError(error) || !disclosingCodes.includes(error.code)) throw error;
      context.logger.info({ request_id: visit.request.id, code: error.code }, 'sent no sign-in code');
    });
    keepTyped(visit);
    return visit.redirect('code', { sent: 'email' in contact ? 'email' : 'phone' });
  },
};

/** Errors that depend on whether there is a user. An earlier code may still be valid. */
const disclosingCodes: readonly string[] = [
  'otp_disabled',
  'signup_disabled',
  'over_request_rate_limit',
  'over_email_send_rate_limit',
  'over_sms_send_rate_limit',
];

/** Signs in with the code. */
export const codeForm: PageDefinition = {
  name: 'code-verify',
  access: 'everyone',
  hasPage: false,
  view: viewCode,
  limiter: 'verify',
  async submit(visit) {
    const { context, metadata } = visit;
    const contact = readContact(visit);
    const token = readCode(visit);
    const type = 'email' in contact ? 'email' : 'sms';
    const verified = await verify(context, { ...contact, type, token, by: 'request' }, metadata);
    // Only changes of an email address have another result.
    if (verified.kind !== 'session') throw errors.otp_expired();
    return completeSignIn(visit, verified.session);
  },
};

function readContact(visit: Visit) {
  const kinds = codeContacts(visit) ?? { email: true, phone: false };
  return readIdentifier(visit.form.identifier ?? '', kinds);
}

/** The link of a mail leads to the app, or back to this browser, which has the verifier. */
function linkTarget(visit: Visit) {
  const { redirectTo, challenge } = visit.destination;
  return redirectTo === ''
    ? { challenge: visit.challenge(verifierPurpose), redirectTo: visit.url('continue') }
    : { challenge, redirectTo };
}

function viewCode(visit: Visit, outcome: Outcome): View {
  const { texts, query, form: fields } = visit;
  const identifier = fields.identifier ?? takeTyped(visit).identifier;
  const isSent = query.sent !== undefined && identifier !== undefined;
  const problem = outcome.problem && describeSentCode(outcome.problem, visit);
  return {
    title: texts.signInWithCode,
    content: html`${problemSummary(problem)}
${isSent ? enterForm(visit, identifier, problem) : requestForm(visit, { identifier, problem })}
<p class="after"><a href="${visit.path('sign-in')}">${texts.backToSignIn}</a></p>`,
  };
}

/** Codes of mails have the error of links. */
export function describeSentCode(problem: Problem, { texts }: Visit): Problem {
  return problem.code === 'otp_expired'
    ? { ...problem, message: texts.errors.mfa_verification_failed, field: 'code' }
    : problem;
}

function requestForm(
  visit: Visit,
  { identifier, problem }: { readonly identifier: string | undefined; readonly problem: Outcome['problem'] },
): Html {
  const { texts, destination } = visit;
  const kinds = codeContacts(visit) ?? { email: true, phone: false };
  const value = identifier ?? destination.hints.login_hint;
  return html`<p>${texts.signInCodeText}</p>
${form(visit, {
  action: visit.path('code'),
  content: html`${identifierField(visit, { ...kinds, value, problem })}
${captcha(visit)}
<button>${texts.sendCode}</button>`,
})}`;
}

function enterForm(visit: Visit, identifier: string, problem: Outcome['problem']): Html {
  const { texts, query } = visit;
  const isPhone = query.sent === 'phone';
  const label = isPhone ? texts.messageCode : texts.emailCode;
  const sentTo = html`<input type="hidden" name="identifier" value="${identifier}">`;
  return html`${problem === undefined && notice(isPhone ? texts.messageCodeSent : texts.emailCodeSent)}
<p><strong>${identifier}</strong></p>
${form(visit, {
  action: visit.path('code-verify', { sent: isPhone ? 'phone' : 'email' }),
  content: html`${sentTo}
${sentCodeField({ label }, problem)}
<button>${texts.signIn}</button>`,
})}
${form(visit, {
  action: visit.path('code'),
  content: html`${sentTo}
${captcha(visit)}
<button class="link">${texts.sendAnotherCode}</button>`,
})}`;
}
