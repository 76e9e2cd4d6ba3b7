import { type Html, html } from '@tollgate/kit/html';
import { challengeFactor } from '../mfa/factors.ts';
import { verifyFactor } from '../mfa/verify.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import { completeSignIn } from './completion.ts';
import { field, form, problemSummary } from './forms.ts';
import { needsSecondFactor, type Outcome, type PageDefinition, type View } from './page.ts';
import type { Problem } from './problems.ts';
import { isRecovery } from './recovery.ts';
import type { Owner, Visit } from './visit.ts';

/** Verifies the second factor after the sign-in. */
export const secondFactorPage: PageDefinition = {
  name: 'second-factor',
  access: 'session',
  view: viewSecondFactor,
  show: (visit) =>
    visit.owner !== undefined && needsSecondFactor(visit.owner.user, visit.owner.session)
      ? undefined
      : visit.redirect('account'),
  limiter: 'factor',
  async submit(visit) {
    const { owner } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const issued = await verifyCode(visit, owner);
    if (!isRecovery(owner)) return completeSignIn(visit, issued, { aal: 'aal2', method: 'password' });
    // The password can be set now.
    visit.keep(issued);
    return visit.redirect('password');
  },
};

/** Verifies the code of the form for the factor of the form. */
export async function verifyCode(visit: Visit, owner: Owner): Promise<IssuedSession> {
  const { context, metadata } = visit;
  const { factor_id: factorId = '', code = '' } = visit.form;
  const { user } = owner;
  const { id: challengeId } = await challengeFactor(context, { user, factorId, body: {} }, metadata);
  const verification = { ...owner, factorId, challengeId, body: { code: code.replaceAll(/\s/g, '') } };
  return verifyFactor(context, verification, metadata);
}

/** The field for the code of an authenticator app. */
export function codeField(problem: Problem | undefined): Html {
  return field(
    {
      name: 'code',
      label: 'Code from your authenticator app',
      autocomplete: 'one-time-code',
      inputMode: 'numeric',
      hint: 'Six digits that change every 30 seconds.',
    },
    problem,
  );
}

function viewSecondFactor(visit: Visit, { problem }: Outcome): View {
  const factors = visit.owner?.user.factors.filter(({ status }) => status === 'verified') ?? [];
  const [only, ...others] = factors;
  const content = html`${
    others.length === 0
      ? html`<input type="hidden" name="factor_id" value="${only?.id}">`
      : html`<fieldset><legend>Which app?</legend>${factors.map(
          ({ id, friendlyName }, index) =>
            html`<label class="choice"><input type="radio" name="factor_id" value="${id}"${
              (visit.form.factor_id ?? factors[0]?.id) === id && html` checked`
            }> ${friendlyName || `Authenticator app ${index + 1}`}</label>`,
        )}</fieldset>`
  }
${codeField(problem)}
<button>Verify</button>`;
  return {
    title: 'Two-step verification',
    content: html`${problemSummary(problem)}
${form(visit, { action: visit.path('second-factor'), content })}
${form(visit, {
  action: visit.path('sign-out'),
  content: html`<button class="link">Use another account</button>`,
})}`,
  };
}
