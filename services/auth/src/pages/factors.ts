import { html, trustedHtml } from '@tollgate/kit/html';
import { toObject } from '../http/post-form.ts';
import { enrollFactor, type Factor, unenrollFactor } from '../mfa/factors.ts';
import { getUser } from '../users/update.ts';
import { field, form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import { codeFields, sendCode, verifyCode } from './second-factor.ts';
import type { Owner, Visit } from './visit.ts';

/** Types that can be set up without a script, with the texts of their pages. */
export const setups = {
  totp: {
    title: 'Set up an authenticator app',
    text: 'You will need an app that shows six-digit codes, on your phone or in your password manager.',
  },
  phone: {
    title: 'Set up text messages',
    text: 'We send a code to your phone each time you sign in.',
  },
} as const;

type SetupType = keyof typeof setups;

/** Sets a factor up: its name or number first, then its first code. */
export const enrollPage: PageDefinition = {
  name: 'factor',
  access: 'user',
  view: viewEnroll,
  async submit(visit) {
    const { context, owner, metadata, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const type = readType(visit);
    const enrollment = { type, friendlyName: fields.friendly_name, body: { phone: fields.phone } };
    const { id, members } = await enrollFactor(context, owner, enrollment, metadata);
    if (type === 'totp') return sendView(visit, viewSecret(visit, id, toObject(members.totp)));
    // With the new factor.
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
    return visit.redirect('account', { saved: 'factor' });
  },
};

export async function removeFactor(visit: Visit, owner: Owner): Promise<'factor-removed'> {
  const { factor_id: factorId = '' } = visit.form;
  await unenrollFactor(visit.context, { ...owner, factorId }, visit.metadata);
  return 'factor-removed';
}

function readType({ query }: Visit): SetupType {
  return query.type === 'phone' ? 'phone' : 'totp';
}

function viewEnroll(visit: Visit, { problem }: Outcome): View {
  const type = readType(visit);
  const { title, text } = setups[type];
  const { friendly_name: friendlyName, phone } = visit.form;
  const input =
    type === 'phone'
      ? field({ name: 'phone', label: 'Phone number', autocomplete: 'tel', value: phone }, problem)
      : field(
          {
            name: 'friendly_name',
            label: 'Name of the app (optional)',
            autocomplete: 'off',
            hint: 'Helps you to tell several apps apart.',
            value: friendlyName,
            isOptional: true,
          },
          problem,
        );
  return {
    title,
    content: html`${problemSummary(problem)}
<p>${text}</p>
${form(visit, { action: visit.path('factor', { type }), content: html`${input}<button>Continue</button>` })}
<p class="after"><a href="${visit.path('account')}">Back to the account</a></p>`,
  };
}

function viewSecret(visit: Visit, id: string, totp: Readonly<Record<string, unknown>>): View {
  const { secret, qr_code: qrCode } = totp;
  return {
    title: setups.totp.title,
    content: html`<p>Scan this QR code with the app:</p>
<p class="qr">${trustedHtml(String(qrCode).replace('<svg', '<svg role="img" aria-label="QR code"'))}</p>
<p>Or enter this key: <code>${String(secret).replaceAll(/(.{4})(?=.)/g, '$1 ')}</code></p>
${codeForm(visit, { id, type: 'totp' }, {})}`,
  };
}

/** A factor that is being set up. */
interface NewFactor extends Pick<Factor, 'id'> {
  readonly type: SetupType;
  readonly challengeId?: string | undefined;
}

/** After a wrong code of an app, without its secret, which is shown once. */
function viewCode(visit: Visit, factor: NewFactor, outcome: Outcome): View {
  return {
    title: setups[factor.type].title,
    content: html`${problemSummary(outcome.problem)}
${codeForm(visit, factor, outcome)}
<p class="after"><a href="${visit.path('factor', { type: factor.type })}">Start again</a></p>`,
  };
}

function codeForm(visit: Visit, factor: NewFactor, { problem }: Outcome) {
  const { type, challengeId } = factor;
  return html`${form(visit, {
    action: visit.path('factor-code', { type }),
    content: codeFields(factor, { challengeId, problem }),
  })}
<p class="after"><a href="${visit.path('account')}">Cancel</a></p>`;
}
