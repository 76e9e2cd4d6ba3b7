import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { numberedLines } from '../../ui/code.ts';
import { field } from '../../ui/fields.ts';
import { readLines } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, card } from '../../ui/text.ts';
import { findingTexts, validationNotes } from './manifest.ts';
import { findQueriedName, objectPath, policiesPage, readObject, type Schemas } from './page.ts';

/** The form, empty or with the newest version of an object of the URL. */
export async function viewTry(visit: Visit): Promise<View> {
  const name = findQueriedName(visit);
  return tryPage(visit, name === undefined ? '' : (await readObject(visit, name)).manifest);
}

/** Shows what would become of the text of the form. Nothing is stored. */
export async function submitTry(visit: Visit, form: URLSearchParams): Promise<View> {
  const manifests = readLines(form, 'manifests');
  if (manifests.trim() === '') return tryPage(visit, '');
  const validation = await visit.services.xds((client) =>
    client.POST('/v1/validate', { body: { manifests } }),
  );
  return tryPage(visit, manifests, result(validation, manifests, visit));
}

function tryPage(visit: Visit, manifests: string, findings?: Html): View {
  const hint = 'Access policies and limits, at most 100. Each is evaluated against what is live.';
  const form = html`<form class="card stack" method="post" action="/policies/try">${visit.formFields()}
${field({ name: 'manifests', label: 'YAML', value: manifests, hint, isLong: true, isRequired: true })}
<div class="actions"><button class="primary">Try</button></div><p class="dim">Nothing is stored, and nothing is put into force.</p></form>`;
  return policiesPage(visit, 'Try', html`${findings}${form}`);
}

function result(validation: Schemas['Validation'], manifests: string, visit: Visit): Html {
  const { accepted, objects } = validation;
  const { notes, others } = validationNotes(validation);
  return html`${card(
    'Result',
    html`<p>${accepted ? badge('all would be accepted', 'ok') : badge('not all would be accepted', 'bad')}</p>
${findingTexts(others)}
${numberedLines('YAML that was tried', manifests, notes)}`,
  )}${table({
    caption: 'Objects',
    rows: objects,
    url: visit.url,
    empty: emptyState('The text has no access policy and no limits.'),
    columns: [
      { title: 'Name', cell: nameCell },
      { title: 'Kind', cell: ({ kind }) => html`<span class="n">${kind}</span>` },
      {
        title: 'Result',
        cell: (object) => (object.accepted ? badge('accepted', 'ok') : badge('refused', 'bad')),
      },
      { title: 'Reason', cell: ({ conditions }) => conditions.map(({ reason }) => reason).join(', ') },
      {
        title: 'Compared with',
        cell: ({ inForce }) => (inForce === undefined ? 'nothing in force' : `version ${inForce}`),
      },
      { title: 'Changes', cell: changesCell },
    ],
  })}`;
}

type ValidatedObject = Schemas['ValidatedObject'];

function nameCell(object: ValidatedObject): Html {
  const name = `${object.namespace}/${object.name}`;
  return object.exists ? html`<a href="${objectPath(object)}">${name}</a>` : html`${name} ${badge('new')}`;
}

/** Changes of an object that a page shows. */
const maxChanges = 20;

function changesCell({ changes, moreChanges }: ValidatedObject): Html | undefined {
  const more = moreChanges + Math.max(0, changes.length - maxChanges);
  if (changes.length === 0) return html`<span class="dim">none</span>`;
  return html`${changes
    .slice(0, maxChanges)
    .map(
      (change) => html`<div><code>${change.field}</code>: ${changeText(change)}</div>`,
    )}${more > 0 && html`<div class="dim">and ${more} more</div>`}`;
}

function changeText({ before, after }: Schemas['SpecChange']): string {
  if (before === undefined) return `added ${JSON.stringify(after)}`;
  if (after === undefined) return `removed ${JSON.stringify(before)}`;
  return `${JSON.stringify(before)} becomes ${JSON.stringify(after)}`;
}
