import { html } from '@tollgate/kit/html';
import { generateRecoveryCodes, regenerateRecoveryCodes } from '../mfa/recovery-codes.ts';
import { backTo } from './area.ts';
import { form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import type { Visit } from './visit.ts';

/** Makes recovery codes, or replaces them. They are shown once. */
export const recoveryCodesPage: PageDefinition = {
  name: 'recovery-codes',
  access: 'user',
  isSensitive: true,
  view: viewRequest,
  async submit(visit) {
    const { context, owner, metadata } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const { codes } = hasCodes(visit)
      ? await regenerateRecoveryCodes(context, owner, metadata)
      : await generateRecoveryCodes(context, owner, '', metadata);
    return sendView(visit, viewCodes(visit, codes));
  },
};

function hasCodes({ owner }: Visit): boolean {
  return owner?.user.factors.some(({ type }) => type === 'recovery_code') ?? false;
}

function viewRequest(visit: Visit, { problem }: Outcome): View {
  const { texts } = visit;
  const replaces = hasCodes(visit);
  const title = replaces ? texts.replaceRecoveryCodes : texts.createRecoveryCodes;
  return {
    title,
    content: html`${problemSummary(problem)}
<p>${texts.recoveryCodesText}</p>
${replaces && html`<p>${texts.replaceRecoveryCodesText}</p>`}
${form(visit, { action: visit.path('recovery-codes'), content: html`<button>${title}</button>` })}
${backTo(visit, 'security')}`,
  };
}

function viewCodes(visit: Visit, codes: readonly string[]): View {
  const { texts } = visit;
  return {
    title: texts.recoveryCodes,
    content: html`<p>${texts.keepRecoveryCodes}</p>
<ul class="items">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
${backTo(visit, 'security')}`,
  };
}
