import { type Html, html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import { errors } from '../errors.ts';
import { challengeFactor, getFactor } from '../mfa/factors.ts';
import { redeemRecoveryCode } from '../mfa/recovery-codes.ts';
import { verifyFactor } from '../mfa/verify.ts';
import { needsSecondFactor } from '../sessions/assurance.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import type { Factor } from '../users/factor.ts';
import { completeSignIn, continueAs } from './completion.ts';
import { field, form, notice, problemSummary, readCode } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { Problem } from './problems.ts';
import { isRecovery } from './recovery.ts';
import type { PageTexts } from './texts/en.ts';
import type { Owner, Visit } from './visit.ts';

/** Verifies the second factor after the sign-in. */
export const secondFactorPage: PageDefinition = {
  name: 'second-factor',
  access: 'session',
  view: viewSecondFactor,
  show: (visit) =>
    visit.owner === undefined || needsSecondFactor(visit.owner.user, visit.owner.session)
      ? undefined
      : continueAs(visit, visit.owner),
  limiter: 'factor',
  async submit(visit) {
    const { owner, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    if (fields.send !== undefined) {
      const factor = fields.factor_id ?? '';
      return visit.redirect('second-factor', { factor, challenge: await sendCode(visit, owner, factor) });
    }
    const issued = await verifyCode(visit, owner);
    if (!isRecovery(owner)) return completeSignIn(visit, issued);
    // The password can be set now.
    visit.keep(issued);
    return visit.redirect('password');
  },
};

/** Creates a challenge, which sends a code to a phone. Returns its id. */
export async function sendCode(visit: Visit, owner: Owner, factorId: string): Promise<string> {
  const { id } = await challengeFactor(visit.context, { ...owner, factorId, body: {} }, visit.metadata);
  return id;
}

/** Verifies the code of the form for the factor of the form. */
export async function verifyCode(visit: Visit, owner: Owner): Promise<IssuedSession> {
  const { context, metadata } = visit;
  const { factor_id: factorId = '', challenge_id: sent = '', code = '' } = visit.form;
  const { type } = getFactor(owner.user, factorId);
  if (type === 'recovery_code') return redeemRecoveryCode(context, owner, code, metadata);
  // Codes of apps need no challenge before.
  const challengeId = type === 'totp' ? await sendCode(visit, owner, factorId) : sent;
  if (!isUuid(challengeId)) throw errors.mfa_challenge_expired();
  const verification = { ...owner, factorId, challengeId, body: { code: readCode(visit) } };
  return verifyFactor(context, verification, metadata);
}

/** The hidden and the visible field for the code of a factor. */
export function codeFields(
  { texts }: Visit,
  factor: Pick<Factor, 'id' | 'type'>,
  {
    challengeId = '',
    problem,
  }: { readonly challengeId?: string | undefined; readonly problem?: Problem | undefined },
): Html {
  const { label, hint, inputMode } = codeField(factor.type, texts);
  return html`<input type="hidden" name="factor_id" value="${factor.id}">
<input type="hidden" name="challenge_id" value="${challengeId}">
${field(
  {
    name: 'code',
    ...{ label, hint, inputMode },
    autocomplete: 'one-time-code',
  },
  problem,
)}
<button>${texts.verify}</button>`;
}

function codeField(type: Factor['type'], texts: PageTexts) {
  if (type === 'totp')
    return { label: texts.appCode, hint: texts.appCodeHint, inputMode: 'numeric' } as const;
  if (type === 'recovery_code') return { label: texts.recoveryCode, hint: texts.recoveryCodeHint };
  return { label: texts.messageCode, inputMode: 'numeric' } as const;
}

/** The name of a factor for its user. */
export function describeFactor({ type, friendlyName, phone }: Factor, texts: PageTexts): string {
  // Their name is a constant in English.
  if (type === 'recovery_code') return texts.recoveryCodes;
  if (friendlyName !== '') return friendlyName;
  return type === 'phone' ? texts.textMessageTo(phone.slice(-2)) : texts.authenticatorApp;
}

function viewSecondFactor(visit: Visit, { problem }: Outcome): View {
  const { query, form: fields, texts } = visit;
  const factors = listFactors(visit);
  const wanted = fields.factor_id ?? query.factor;
  const factor = factors.find(({ id }) => id === wanted) ?? factors[0];
  const challengeId = fields.challenge_id ?? query.challenge ?? '';
  const others = factors.filter((other) => other !== factor);
  return {
    title: texts.twoStep,
    content: html`${problemSummary(problem)}
${factor === undefined && notice(texts.onlyInApp)}
${factor !== undefined && factorForm(visit, factor, { problem, challengeId })}
${others.map(
  (other) =>
    html`<p class="after"><a href="${visit.path('second-factor', { factor: other.id })}">${texts.useFactor(describeFactor(other, texts))}</a></p>`,
)}
${form(visit, {
  action: visit.path('sign-out'),
  content: html`<button class="link">${texts.useAnotherAccount}</button>`,
})}`,
  };
}

/** Security keys need a script. Recovery codes are for the loss of the others, and come last. */
function listFactors({ owner }: Visit): readonly Factor[] {
  const usable = owner?.user.factors.filter(
    ({ status, type }) => status === 'verified' && type !== 'webauthn',
  );
  const isCodes = ({ type }: Factor) => Number(type === 'recovery_code');
  return usable?.toSorted((a, b) => isCodes(a) - isCodes(b)) ?? [];
}

function factorForm(
  visit: Visit,
  factor: Factor,
  { problem, challengeId }: { readonly problem: Problem | undefined; readonly challengeId: string },
): Html {
  const { texts } = visit;
  const action = visit.path('second-factor');
  const send = html`<input type="hidden" name="factor_id" value="${factor.id}">
<input type="hidden" name="send" value="true">`;
  if (factor.type !== 'phone')
    return form(visit, { action, content: codeFields(visit, factor, { problem }) });
  if (challengeId === '')
    return html`<p>${describeFactor(factor, texts)}</p>
${form(visit, { action, content: html`${send}<button>${texts.sendCode}</button>` })}`;
  return html`${form(visit, { action, content: codeFields(visit, factor, { challengeId, problem }) })}
${form(visit, { action, content: html`${send}<button class="link">${texts.sendAnotherCode}</button>` })}`;
}
