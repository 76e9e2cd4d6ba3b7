import { randomBytes } from 'node:crypto';
import { isAppError } from '@tollgate/kit/errors';
import { html } from '@tollgate/kit/html';
import { sendNonce } from '../account/reauthentication.ts';
import { updateOwnUser } from '../account/update.ts';
import { exchangeCode, findCodeOwner, toChallenge } from '../flows/pkce.ts';
import { requestedAudience } from '../http/request-metadata.ts';
import { needsSecondFactor } from '../sessions/assurance.ts';
import { recover } from '../sign-in/otp.ts';
import { backTo } from './area.ts';
import { captcha } from './captcha.ts';
import { continueAs, replaceAccount } from './completion.ts';
import { confirmFirst } from './confirm.ts';
import {
  accountEmailField,
  currentPasswordField,
  form,
  notice,
  problemSummary,
  sentCodeField,
} from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { describeCode } from './problems.ts';
import { newPasswordField } from './sign-up.ts';
import type { Owner, Visit } from './visit.ts';

/** Requests the mail with which a new password can be set. */
export const recoveryPage: PageDefinition = {
  name: 'recovery',
  access: 'everyone',
  view: viewRecovery,
  limiter: 'otp',
  hasCaptcha: true,
  async submit(visit) {
    const {
      context,
      form: { email },
      metadata,
    } = visit;
    // The link has the verifier, as the mail may be read on another device.
    const verifier = randomBytes(32).toString('base64url');
    const input = {
      email,
      challenge: toChallenge(verifier),
      redirectTo: visit.url('password', { verifier }),
      aud: requestedAudience(visit.request, context),
    };
    await recover(context, input, metadata);
    return visit.redirect('recovery', { sent: 'true' });
  },
};

function viewRecovery(visit: Visit, { problem }: Outcome): View {
  const { texts } = visit;
  if (visit.query.sent !== undefined && problem === undefined)
    return {
      title: texts.checkEmail,
      content: html`${notice(texts.recoverySent)}
<p class="after">${texts.noEmail} <a href="${visit.path('recovery')}">${texts.tryAgain}</a></p>
<p class="after"><a href="${visit.path('sign-in')}">${texts.backToSignIn}</a></p>`,
    };
  return {
    title: texts.forgotPassword,
    content: html`${problemSummary(problem)}
<p>${texts.recoveryText}</p>
${form(visit, {
  action: visit.path('recovery'),
  content: html`${accountEmailField(visit, problem)}
${captcha(visit)}
<button>${texts.sendLink}</button>`,
})}
<p class="after"><a href="${visit.path('sign-in')}">${texts.backToSignIn}</a></p>`,
  };
}

/**
 * Sets a password: with the code of the mail, which the form spends rather than the page, or in a
 * session.
 */
export const passwordPage: PageDefinition = {
  name: 'password',
  access: 'everyone',
  view: viewPassword,
  show(visit) {
    const { owner, query } = visit;
    if (query.code !== undefined || query.error_code !== undefined) return undefined;
    if (owner === undefined) return visit.redirect('sign-in');
    if (needsSecondFactor(owner.user, owner.session)) return visit.redirect('second-factor');
    // The form has the current password where it is required, which confirms the session.
    return isRecovery(owner) || needsCurrentPassword(visit, owner)
      ? undefined
      : confirmFirst(visit, 'password');
  },
  limiter: 'otp',
  async submit(visit) {
    const { context, form: fields, metadata } = visit;
    const owner = await redeemCode(visit);
    if (owner === undefined) return visit.redirect('sign-in');
    if (needsSecondFactor(owner.user, owner.session)) return visit.redirect('second-factor');
    const { password = '', current_password: currentPassword, nonce } = fields;
    const update = { password, currentPassword, nonce, challenge: undefined, redirectTo: '' };
    await updateOwnUser(context, owner, update, metadata).catch(async (error: unknown) => {
      if (isAppError(error) && error.code === 'reauthentication_needed')
        await sendNonce(context, owner.user, metadata);
      throw error;
    });
    return isRecovery(owner) ? continueAs(visit, owner) : visit.redirect('security', { saved: 'password' });
  },
};

/** The user of the code in the query, who is now signed in, or of the session. */
async function redeemCode(visit: Visit): Promise<Owner | undefined> {
  const { code: authCode, verifier: codeVerifier } = visit.query;
  if (authCode === undefined) return visit.owner;
  return replaceAccount(visit, await exchangeCode(visit.context, { authCode, codeVerifier }, visit.metadata));
}

/** Whether the session was started by the link of a recovery mail. */
export function isRecovery({ session }: Owner): boolean {
  return session.methods.some(({ method }) => method === 'recovery');
}

function needsCurrentPassword({ context: { settings } }: Visit, owner: Owner): boolean {
  const hasPassword = owner.user.passwordHash !== undefined;
  return hasPassword && settings.updatePasswordRequireCurrentPassword && !isRecovery(owner);
}

const reauthenticationCodes = ['reauthentication_needed', 'reauthentication_not_valid'];

async function viewPassword(
  visit: Visit,
  { problem = describeCode(visit.query.error_code, visit.texts) }: Outcome,
): Promise<View> {
  const { texts } = visit;
  const { code, verifier = '', error_code: error } = visit.query;
  if (error !== undefined)
    return {
      title: texts.brokenLink,
      ...(problem && { problem }),
      content: html`${problemSummary(problem)}
<p class="after"><a href="${visit.path('recovery')}">${texts.requestLink}</a></p>`,
    };
  const redeems = code !== undefined && !visit.hasSignedIn;
  const codeOwner = redeems
    ? await findCodeOwner(visit.context, { authCode: code, codeVerifier: verifier })
    : undefined;
  // A password that is entered before the second factor would be lost.
  if (codeOwner !== undefined && needsSecondFactor(codeOwner, undefined))
    return {
      title: texts.setNewPassword,
      content: html`${problemSummary(problem)}
<p>${texts.confirmFirst}</p>
${form(visit, { action: visit.path('password', { code: code ?? '', verifier }), content: html`<button>${texts.next}</button>` })}`,
    };
  const owner = redeems ? undefined : visit.owner;
  const needsCurrent = owner !== undefined && needsCurrentPassword(visit, owner);
  const needsNonce = problem !== undefined && reauthenticationCodes.includes(problem.code);
  const content = html`${
    owner !== undefined &&
    html`<input type="text" name="username" autocomplete="username" value="${owner.user.email || owner.user.phone}" hidden>`
  }
${needsCurrent && currentPasswordField(texts, problem)}
${newPasswordField(visit, { label: texts.newPassword, problem })}
${needsNonce && sentCodeField({ name: 'nonce', label: texts.code }, problem)}
<button>${texts.savePassword}</button>`;
  const action = redeems ? visit.path('password', { code, verifier }) : visit.path('password');
  return {
    title: texts.setNewPassword,
    content: html`${problemSummary(problem)}
${form(visit, { action, content })}
${owner !== undefined && !isRecovery(owner) && backTo(visit, 'security')}`,
  };
}
