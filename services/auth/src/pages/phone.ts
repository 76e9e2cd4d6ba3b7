import { html } from '@tollgate/kit/html';
import { updateOwnUser } from '../account/update.ts';
import { confirmPhoneChange } from '../verification/verify.ts';
import { accountPage } from './account.ts';
import { backTo } from './area.ts';
import { describeSentCode } from './code.ts';
import { form, problemSummary, readCode, sentCodeField } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { Visit } from './visit.ts';

const isEnabled: PageDefinition['isEnabled'] = ({ externalPhoneEnabled }) => externalPhoneEnabled;

/** Changes the phone number, or sends a code to the new one. */
export const phoneForm: PageDefinition = {
  ...accountPage,
  name: 'phone',
  home: accountPage.name,
  isEnabled,
  hasPage: false,
  isSensitive: true,
  limiter: 'otp',
  async submit(visit) {
    const { context, owner, metadata, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const update = { phone: fields.phone, challenge: undefined, redirectTo: '' };
    const { phone, newPhone } = await updateOwnUser(context, owner, update, metadata);
    // A number that is confirmed later stays unchanged until then.
    const isSent = newPhone !== '' && phone === owner.user.phone;
    return isSent ? visit.redirect('phone-code') : visit.redirect('account', { saved: 'phone' });
  },
};

/** Confirms the new phone number by the code. */
export const phoneCodePage: PageDefinition = {
  name: 'phone-code',
  access: 'user',
  isEnabled,
  show: (visit) => (visit.owner?.user.newPhone === '' ? visit.redirect('account') : undefined),
  view: viewCode,
  limiter: 'verify',
  async submit(visit) {
    const { context, owner, metadata } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    await confirmPhoneChange(context, owner.user, readCode(visit), metadata);
    return visit.redirect('account', { saved: 'phone' });
  },
};

function viewCode(visit: Visit, outcome: Outcome): View {
  const { texts, owner } = visit;
  const problem = outcome.problem && describeSentCode(outcome.problem, visit);
  const phone = owner?.user.newPhone ?? '';
  return {
    title: texts.phoneCodeTitle,
    content: html`${problemSummary(problem)}
<p>${texts.phoneCodeText(`+${phone}`)}</p>
${form(visit, {
  action: visit.path('phone-code'),
  content: html`${sentCodeField({ label: texts.messageCode }, problem)}
<button>${texts.verify}</button>`,
})}
${form(visit, {
  action: visit.path('phone'),
  content: html`<input type="hidden" name="phone" value="${phone}">
<button class="link">${texts.sendAnotherCode}</button>`,
})}
${backTo(visit, 'account')}`,
  };
}
