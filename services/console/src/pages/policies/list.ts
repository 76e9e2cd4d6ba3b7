import { type Html, html } from '@tollgate/kit/html';
import { orProblem } from '../../http/problems.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { type FilterField, filters } from '../../ui/form.ts';
import { emptyState, problem } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { kinds, objectPath, policiesPage, type Schemas, toKind } from './page.ts';
import { acknowledgedBy, openConditions, stateBadge } from './state.ts';

const pageSize = 50;

const fields: readonly FilterField[] = [
  { name: 'find', label: 'Name', placeholder: 'shop/orders', isSearch: true },
  {
    name: 'kind',
    label: 'Kind',
    choices: { '': 'Any', ...Object.fromEntries(kinds.map((kind) => [kind, kind])) },
  },
  { name: 'namespace', label: 'Namespace', placeholder: 'shop' },
  { name: 'accepted', label: 'State', choices: { '': 'Any', true: 'Accepted', false: 'Refused' } },
];

/** Access policies and limits, whose problems come with the state of the server. */
export async function viewObjects(visit: Visit): Promise<View> {
  const [list, problems] = await Promise.all([
    visit.services.xds((client) => client.GET('/v1/objects', { params: { query: toQuery(visit) } })),
    orProblem(viewProblems(visit), visit),
  ]);
  const content = html`${problems}${objectTable(list, visit)}`;
  return policiesPage(
    visit,
    'Policies',
    html`${filters(fields, visit.url)}${visit.liveRegion('objects', { everySeconds: 10 }, content)}`,
  );
}

async function viewProblems(visit: Visit) {
  const status = await visit.services.xds((client) => client.GET('/v1/status'));
  return serverProblems(status, visit.nowMs);
}

function toQuery(visit: Visit) {
  const [kind, namespace] = [toKind(visit.query('kind')), visit.query('namespace')];
  const [find, accepted, cursor] = [visit.query('find'), visit.query('accepted'), visit.query('cursor')];
  return {
    limit: pageSize,
    ...(kind && { kind }),
    ...(namespace && { namespace }),
    ...(find && { find }),
    ...(accepted && { accepted: accepted === 'true' }),
    ...(cursor && { cursor }),
  };
}

function objectTable({ objects, next, total, counts }: Schemas['ObjectList'], visit: Visit): Html {
  return table({
    caption: 'Policies and limits',
    rows: objects,
    url: visit.url,
    nextCursor: next,
    rowId: (object) => `object-${objectPath(object).slice('/policies/'.length).replaceAll('/', '-')}`,
    empty:
      visit.url.search === ''
        ? emptyState(
            'There are no policies and no limits yet. Apply the first one:',
            'kubectl apply -f policy.yaml',
          )
        : emptyState('No policy and no limits match these filters.'),
    columns: [
      {
        title: 'Name',
        cell: (object) => html`<a href="${objectPath(object)}">${object.namespace}/${object.name}</a>`,
      },
      { title: 'Kind', cell: ({ kind }) => html`<span class="n">${kind}</span>` },
      { title: 'State', cell: stateBadge },
      { title: 'Conditions', cell: ({ conditions }) => openConditions(conditions) },
      { title: 'Version', isNumber: true, cell: ({ generation }) => generation },
      { title: 'Domain', cell: ({ domain }) => domain },
      { title: 'Limits', isNumber: true, cell: ({ limits }) => limits },
      { title: 'Acknowledged by', cell: ({ clients }) => acknowledgedBy(clients) },
    ],
    note: html`${total} match. In all: ${kinds
      .map((kind) => `${kind} ${counts[kind].total}, of them refused ${counts[kind].refused}`)
      .join('; ')}.`,
  });
}

/** Files that are no objects, outages of the source, and deletions that wait for a person. */
function serverProblems({ source, heldDeletions }: Schemas['Status'], nowMs: number): Html {
  return html`${source.outages.map(({ reason, since }) =>
    problem({
      title: 'The source does not answer',
      text: html`${reason}, since ${time(since, nowMs)}. What was read before stays in force.`,
    }),
  )}${source.problems.map(({ source: where, message }) => problem({ title: `${where} is not read`, text: message }))}
${heldDeletions.map(({ kind, objects, reason, command }) =>
  problem({ title: `Deletion of ${objects} ${kind} objects is held back`, text: reason, command }),
)}`;
}
