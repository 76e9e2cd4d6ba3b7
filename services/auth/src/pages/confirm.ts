import { html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import { confirmSession } from '../account/change-password.ts';
import { sendNonce } from '../account/reauthentication.ts';
import { hasRecentSignIn } from '../sessions/assurance.ts';
import { backTo } from './area.ts';
import { currentPasswordField, form, notice, problemSummary, sentCodeField } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { keepTyped } from './typed.ts';
import type { Visit } from './visit.ts';

/** The last segment of the path of a page, which continues after the confirmation. */
const pageName = /^[a-z-]{1,40}$/;
/** Parameters of these pages. */
const parameters = ['type', 'factor', 'passkey', 'organization', 'rotate'] as const;

/** How recent a sign-in must be at pages that always need one. */
const recentSignInMs = 10 * 60_000;

/**
 * A redirect to the confirmation of a session that is not recent enough for a change: as the
 * settings require, or always.
 */
export function confirmFirst(
  visit: Visit,
  target: string,
  { always = false }: { readonly always?: boolean } = {},
): FastifyReply | undefined {
  const { owner, context } = visit;
  const { recentSignInMs: required } = context.settings;
  const withinMs = always ? Math.min(required || recentSignInMs, recentSignInMs) : required;
  if (owner === undefined || hasRecentSignIn(context, owner, withinMs)) return undefined;
  keepTyped(visit);
  return visit.redirect('confirm', { target, ...readParameters(visit) });
}

/** Confirms the session by the current password, or by a code that is sent to the user. */
export const confirmPage: PageDefinition = {
  name: 'confirm',
  access: 'user',
  view: viewConfirm,
  limiter: 'otp',
  async submit(visit) {
    const { context, owner, metadata, query, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const { target = '' } = query;
    const more = readParameters(visit);
    if (fields.send !== undefined) {
      await sendNonce(context, owner.user, metadata);
      return visit.redirect('confirm', { target, ...more, sent: 'true' });
    }
    const { current_password: currentPassword, nonce } = fields;
    await confirmSession(context, { ...owner, currentPassword, nonce }, metadata);
    return pageName.test(target) ? visit.redirect(target, more) : visit.redirect('account');
  },
};

function readParameters({ query }: Visit): Readonly<Record<string, string>> {
  return Object.fromEntries(
    parameters.flatMap((name) => {
      const value = query[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function viewConfirm(visit: Visit, { problem }: Outcome): View {
  const { texts, owner, query, form: fields } = visit;
  const { target = '', sent } = query;
  const more = { target, ...readParameters(visit) };
  const isSent = sent !== undefined || fields.nonce !== undefined;
  const canSend = owner !== undefined && (owner.user.email !== '' || owner.user.phone !== '');
  const byPassword = form(visit, {
    action: visit.path('confirm', more),
    content: html`${currentPasswordField(texts, problem)}
<button>${texts.next}</button>`,
  });
  const byCode = form(visit, {
    action: visit.path('confirm', more),
    content: html`${sentCodeField({ name: 'nonce', label: texts.code }, problem)}
<button>${texts.next}</button>`,
  });
  const send = form(visit, {
    action: visit.path('confirm', more),
    content: html`<input type="hidden" name="send" value="true">
<button class="secondary">${isSent ? texts.sendAnotherCode : texts.sendCode}</button>`,
  });
  return {
    title: texts.confirmTitle,
    content: html`${problemSummary(problem)}
${problem === undefined && isSent && notice(texts.codeSent)}
<p>${texts.confirmText}</p>
${isSent ? byCode : owner?.user.passwordHash !== undefined && byPassword}
${canSend && send}
<p class="after"><a href="${visit.path('sign-in', { again: 'true' })}">${texts.signInAgain}</a></p>
${backTo(visit, 'account')}`,
  };
}
