import { html, trustedHtml } from '@tollgate/kit/html';
import { enrollFactor, getFactor, unenrollFactor } from '../mfa/factors.ts';
import { removeRecoveryCodes } from '../mfa/recovery-codes.ts';
import { toObject } from '../outbound/post-form.ts';
import type { Factor } from '../users/factor.ts';
import { getUser } from '../users/save-user.ts';
import { backTo } from './area.ts';
import { field, form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import { codeFields, describeFactor, sendCode, verifyCode } from './second-factor.ts';
import { takeTyped } from './typed.ts';
import type { Visit } from './visit.ts';

/** Types that can be set up without a script, with the texts of their pages. */
export const setups = {
  totp: { title: 'setUpApp', text: 'setUpAppText' },
  phone: { title: 'setUpMessages', text: 'setUpMessagesText' },
} as const;

type SetupType = keyof typeof setups;

/** Sets a factor up: its name or number first, then its first code. */
export const enrollPage: PageDefinition = {
  name: 'factor',
  access: 'user',
  isSensitive: true,
  view: viewEnroll,
  async submit(visit) {
    const { context, owner, metadata, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const type = readType(visit);
    const enrollment = { type, friendlyName: fields.friendly_name, body: { phone: fields.phone } };
    const { id, members } = await enrollFactor(context, owner, enrollment, metadata);
    if (type === 'totp') return sendView(visit, viewSecret(visit, id, toObject(members.totp)));
    // This user has the new factor.
    const user = await getUser(context.store, owner.user.id);
    const challengeId = await sendCode(visit, { ...owner, user }, id);
    return sendView(visit, viewCode(visit, { id, type, challengeId }, {}));
  },
};

/** Verifies the first code of a factor. */
export const confirmFactorPage: PageDefinition = {
  name: 'factor-code',
  access: 'user',
  hasPage: false,
  view: (visit, outcome) => {
    const { factor_id: id = '', challenge_id: challengeId } = visit.form;
    return viewCode(visit, { id, type: readType(visit), challengeId }, outcome);
  },
  limiter: 'factor',
  async submit(visit) {
    const { owner } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    visit.keep(await verifyCode(visit, owner));
    // An application may require the factor.
    return visit.home === 'return'
      ? visit.redirect('return')
      : visit.redirect('security', { saved: 'factor' });
  },
};

/** Asks before a factor is removed. */
export const removeFactorPage: PageDefinition = {
  name: 'factor-remove',
  access: 'user',
  isSensitive: true,
  view: viewRemoval,
  async submit(visit) {
    const { context, owner, metadata, query } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const factor = getFactor(owner.user, query.factor ?? '');
    if (factor.type === 'recovery_code') await removeRecoveryCodes(context, owner, metadata);
    else await unenrollFactor(context, { ...owner, factorId: factor.id }, metadata);
    return visit.redirect('security', { saved: 'factor-removed' });
  },
};

function viewRemoval(visit: Visit, { problem }: Outcome): View {
  const { texts, owner, query } = visit;
  const factor = owner?.user.factors.find(({ id }) => id === query.factor);
  const content = html`<button class="danger">${texts.removeFactor}</button>`;
  return {
    title: texts.removeFactor,
    content: html`${problemSummary(problem)}
${
  factor === undefined
    ? html`<p>${texts.errors.mfa_factor_not_found}</p>`
    : html`<p>${texts.removeFactorText(describeFactor(factor, texts))}</p>
${form(visit, { action: visit.path('factor-remove', { factor: factor.id }), content })}`
}
${backTo(visit, 'security')}`,
  };
}

function readType({ query }: Visit): SetupType {
  return query.type === 'phone' ? 'phone' : 'totp';
}

function viewEnroll(visit: Visit, { problem }: Outcome): View {
  const { texts } = visit;
  const type = readType(visit);
  const { title, text } = setups[type];
  const { friendly_name: friendlyName, phone } = { ...takeTyped(visit), ...visit.form };
  const input =
    type === 'phone'
      ? field({ name: 'phone', label: texts.phoneNumber, autocomplete: 'tel', value: phone }, problem)
      : field(
          {
            name: 'friendly_name',
            label: texts.appName,
            autocomplete: 'off',
            hint: texts.appNameHint,
            value: friendlyName,
            isOptional: true,
          },
          problem,
        );
  return {
    title: texts[title],
    content: html`${problemSummary(problem)}
<p>${texts[text]}</p>
${form(visit, { action: visit.path('factor', { type }), content: html`${input}<button>${texts.next}</button>` })}
${backTo(visit, 'security')}`,
  };
}

function viewSecret(visit: Visit, id: string, totp: Readonly<Record<string, unknown>>): View {
  const { texts } = visit;
  const { secret, qr_code: qrCode } = totp;
  const svg = String(qrCode).replace('<svg', `<svg role="img" aria-label="${texts.qrCode}"`);
  return {
    title: texts.setUpApp,
    content: html`<p>${texts.scanCode}</p>
<p class="qr">${trustedHtml(svg)}</p>
<p>${texts.enterKey} <code>${String(secret).replaceAll(/(.{4})(?=.)/g, '$1 ')}</code></p>
${codeForm(visit, { id, type: 'totp' }, {})}`,
  };
}

/** A factor that is being set up. */
interface NewFactor extends Pick<Factor, 'id'> {
  readonly type: SetupType;
  readonly challengeId?: string | undefined;
}

/** Asks again after a wrong code of an app, without its secret, which is shown once. */
function viewCode(visit: Visit, factor: NewFactor, outcome: Outcome): View {
  return {
    title: visit.texts[setups[factor.type].title],
    content: html`${problemSummary(outcome.problem)}
${codeForm(visit, factor, outcome)}
<p class="after"><a href="${visit.path('factor', { type: factor.type })}">${visit.texts.startAgain}</a></p>`,
  };
}

function codeForm(visit: Visit, factor: NewFactor, { problem }: Outcome) {
  const { type, challengeId } = factor;
  return html`${form(visit, {
    action: visit.path('factor-code', { type }),
    content: codeFields(visit, factor, { challengeId, problem }),
  })}
<p class="after"><a href="${visit.path('security')}">${visit.texts.cancel}</a></p>`;
}
