import { html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { denyCors } from '../http/api.ts';
import { deleteOwnUser } from '../organizations/delete-user.ts';
import { areaPage } from './area.ts';
import { exportData } from './export.ts';
import { form, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { Visit } from './visit.ts';

/** Lets the user download or delete what is stored of them. */
export const dataPage = areaPage('data', (visit) => {
  const { texts, context } = visit;
  const deletion = html`<section aria-labelledby="delete-title">
<h2 id="delete-title">${texts.deleteAccount}</h2>
<p><a class="button" href="${visit.path('delete')}">${texts.deleteAccount}</a></p>
</section>`;
  return html`<section aria-labelledby="download-title">
<h2 id="download-title">${texts.downloadData}</h2>
<p>${texts.downloadText}</p>
${form(visit, { action: visit.path('data-export'), content: html`<button class="secondary">${texts.downloadData}</button>` })}
</section>
${context.settings.pagesAccountDeletion && deletion}`;
});

/** Sends the copy as a file. */
export const exportForm: PageDefinition = {
  ...dataPage,
  name: 'data-export',
  home: dataPage.name,
  hasPage: false,
  needsRecentSignIn: true,
  limiter: 'otp',
  async submit(visit) {
    const { context, owner, metadata, reply } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const data = await exportData(context, owner, metadata);
    denyCors(reply);
    return reply
      .type('application/json; charset=utf-8')
      .headers({
        'cache-control': 'no-store',
        'content-disposition': 'attachment; filename="account-data.json"',
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
      })
      .send(JSON.stringify(data, undefined, 2));
  },
};

/** Deletes the account. */
export const deletePage: PageDefinition = {
  name: 'delete',
  access: 'user',
  isEnabled: ({ pagesAccountDeletion }) => pagesAccountDeletion,
  needsRecentSignIn: true,
  limiter: 'otp',
  view: viewDelete,
  async submit(visit) {
    const { context, owner, metadata, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    // Browsers require it, too.
    if (fields.confirmed !== 'true') throw errors.validation_failed();
    await deleteOwnUser(context, owner.user, metadata);
    visit.signOut();
    return visit.redirect('sign-in', { deleted: 'true' });
  },
};

function viewDelete(visit: Visit, { problem }: Outcome): View {
  const { texts, owner } = visit;
  const content = html`<div class="field"><label class="choice"><input type="checkbox" name="confirmed" value="true" required> ${texts.confirmDeletion}</label></div>
<button class="danger">${texts.deleteAccount}</button>`;
  return {
    title: texts.deleteAccount,
    content: html`${problemSummary(problem)}
<p>${texts.signedInAs} <strong>${owner?.user.email || owner?.user.phone || owner?.user.id}</strong></p>
<p>${texts.deleteText}</p>
${form(visit, { action: visit.path('delete'), content })}
<p class="after"><a href="${visit.path('data')}">${texts.keepAccount}</a></p>`,
  };
}
