import { html, trustedHtml } from '@tollgate/kit/html';
import { toObject } from '../http/post-form.ts';
import { enrollFactor, unenrollFactor } from '../mfa/factors.ts';
import { field, form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import { codeField, verifyCode } from './second-factor.ts';
import type { Owner, Visit } from './visit.ts';

/** Sets an authenticator app up: its name, then the QR code and the first code. */
export const enrollPage: PageDefinition = {
  name: 'factor',
  access: 'user',
  view: viewEnroll,
  async submit(visit) {
    const { context, owner, metadata, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const enrollment = { type: 'totp', friendlyName: fields.friendly_name, body: {} } as const;
    const { id, members } = await enrollFactor(context, owner, enrollment, metadata);
    return sendView(visit, viewSecret(visit, id, toObject(members.totp)));
  },
};

/** Verifies the first code of the app. */
export const confirmFactorPage: PageDefinition = {
  name: 'factor-code',
  access: 'user',
  hasPage: false,
  view: viewCode,
  limiter: 'factor',
  async submit(visit) {
    const { owner } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    visit.keep(await verifyCode(visit, owner));
    return visit.redirect('account', { saved: 'factor' });
  },
};

export async function removeFactor(visit: Visit, owner: Owner): Promise<'factor-removed'> {
  const { factor_id: factorId = '' } = visit.form;
  await unenrollFactor(visit.context, { ...owner, factorId }, visit.metadata);
  return 'factor-removed';
}

function viewEnroll(visit: Visit, { problem }: Outcome): View {
  const content = html`${field(
    {
      name: 'friendly_name',
      label: 'Name of the app (optional)',
      autocomplete: 'off',
      hint: 'Helps you to tell several apps or phones apart.',
      value: visit.form.friendly_name,
      isOptional: true,
    },
    problem,
  )}
<button>Continue</button>`;
  return {
    title: 'Set up an authenticator app',
    content: html`${problemSummary(problem)}
<p>You will need an app that shows six-digit codes, on your phone or in your password manager.</p>
${form(visit, { action: visit.path('factor'), content })}
<p class="after"><a href="${visit.path('account')}">Back to the account</a></p>`,
  };
}

function viewSecret(visit: Visit, id: string, totp: Readonly<Record<string, unknown>>): View {
  const { secret, qr_code: qrCode } = totp;
  return {
    title: 'Set up an authenticator app',
    content: html`<p>Scan this QR code with the app:</p>
<p class="qr">${trustedHtml(String(qrCode).replace('<svg', '<svg role="img" aria-label="QR code"'))}</p>
<p>Or enter this key: <code>${String(secret).replaceAll(/(.{4})(?=.)/g, '$1 ')}</code></p>
${codeForm(visit, id)}`,
  };
}

/** After a wrong code. The secret is shown once. */
function viewCode(visit: Visit, outcome: Outcome): View {
  const { factor_id: id = '' } = visit.form;
  return {
    title: 'Set up an authenticator app',
    content: html`${problemSummary(outcome.problem)}
${codeForm(visit, id, outcome)}
<p class="after"><a href="${visit.path('factor')}">Start again</a></p>`,
  };
}

function codeForm(visit: Visit, id: string, { problem }: Outcome = {}) {
  const content = html`<input type="hidden" name="factor_id" value="${id}">
${codeField(problem)}
<button>Verify</button>`;
  return html`${form(visit, { action: visit.path('factor-code'), content })}
<p class="after"><a href="${visit.path('account')}">Cancel</a></p>`;
}
