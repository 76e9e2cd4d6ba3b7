import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { numberedLines } from '../../ui/code.ts';
import { emptyState, problem } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, card, copyable, details, elementId, time } from '../../ui/text.ts';
import { findingTexts, manifestNotes } from './manifest.ts';
import { objectPath, policiesPage, readName, readObject, type Schemas } from './page.ts';
import { acknowledgedBy, conditionTone, stateBadge } from './state.ts';

type ObjectDetail = Schemas['ObjectDetail'];

/** One object: whether it is in force, its YAML, who has it, and its versions. */
export async function viewObject(visit: Visit): Promise<View> {
  const name = readName(visit);
  const object = await readObject(visit, name);
  const content = html`${warnings(object)}${summary(object)}${conditionTable(object, visit)}${manifest(object)}
${object.acknowledgements.map((one) => acknowledgementTable(one, visit))}${versionTable(object, visit)}`;
  const query = new URLSearchParams({ ...name }).toString();
  return policiesPage(
    visit,
    `${name.kind} ${name.namespace}/${name.name}`,
    html`<div class="actions"><a class="button" href="${objectPath(name)}/versions">Compare versions</a> <a class="button" href="/policies/try?${query}">Try a change</a>${visit.can('what-if') && html` <a class="button" href="/what-if?${query}">What if</a>`}</div>
${visit.liveRegion('object', { everySeconds: 10 }, content)}`,
  );
}

/** Says which version applies, where that is not the newest. */
function warnings(object: ObjectDetail): Html | undefined {
  const { generation, accepted, inForce, heldBack } = object;
  if (heldBack !== undefined) return problem({ title: 'The deletion is held back', text: heldBack });
  if (accepted || inForce === generation) return undefined;
  const title = `Version ${generation} is refused`;
  if (inForce === undefined)
    return problem({ title, text: 'No version is in force. Correct the lines that are marked below.' });
  const text = html`Version ${inForce}, the last valid one, stays in force. Correct the lines that are marked below, or <a href="${objectPath(object)}/versions?from=${inForce}&amp;to=${generation}">compare it with the version in force</a>.`;
  return problem({ title, text });
}

function summary(object: ObjectDetail): Html {
  const { file, generation, inForce, domain, limiterClass, limits, clients, replica } = object;
  return card(
    'State',
    details({
      State: stateBadge(object),
      'Newest version': generation,
      'Version in force': inForce ?? 'none',
      'Acknowledged by': acknowledgedBy(clients),
      Domain: domain,
      'Limiter class': limiterClass,
      'Limits in force': limits,
      File: file && copyable(file),
      'xDS server': replica,
    }),
  );
}

function conditionTable({ conditions }: ObjectDetail, visit: Visit): Html {
  return table({
    caption: 'Conditions',
    rows: conditions,
    url: visit.url,
    empty: emptyState('The xDS server has not evaluated the object yet.'),
    columns: [
      {
        title: 'Condition',
        cell: (condition) => badge(`${condition.type}: ${condition.status}`, conditionTone(condition)),
      },
      { title: 'Reason', cell: ({ reason }) => html`<span class="n">${reason}</span>` },
      { title: 'Message', cell: ({ message }) => html`<pre>${message}</pre>` },
      { title: 'At', cell: ({ target }) => target },
    ],
  });
}

function manifest(object: ObjectDetail): Html {
  const { notes, others } = manifestNotes(object);
  return card(
    `YAML of version ${object.generation}`,
    html`${findingTexts(others)}
${numberedLines('YAML', object.manifest, notes)}`,
  );
}

const clientNames = { limiter: 'Limiters', 'auth-server': 'Auth servers' } as const;

function acknowledgementTable(
  { clients, resource, connected, acknowledged, list }: Schemas['Acknowledgement'],
  visit: Visit,
): Html {
  return table({
    caption: `${clientNames[clients]}: ${acknowledged} of ${connected} have acknowledged ${resource}`,
    rows: list,
    url: visit.url,
    rowId: ({ node, address }) => elementId('client', clients, resource, node, address),
    empty: emptyState('None is connected to this replica of the xDS server.'),
    columns: [
      { title: 'Replica', cell: ({ node, address }) => node || address },
      { title: 'State', cell: acknowledgementState },
      { title: 'Acknowledged', cell: (client) => time(client.acknowledgedAt, visit.nowMs) },
      { title: 'Has', cell: ({ version }) => shortVersion(version) },
      { title: 'Should have', cell: ({ wanted }) => shortVersion(wanted) },
      { title: 'Certificate', cell: ({ identity }) => identity },
      {
        title: 'Refused because',
        cell: ({ rejection }) => rejection && html`${rejection.message} (${time(rejection.at, visit.nowMs)})`,
      },
    ],
  });
}

function acknowledgementState({ acknowledged, rejection }: Schemas['AcknowledgingClient']): Html {
  if (acknowledged) return badge('acknowledged', 'ok');
  return rejection === undefined ? badge('waiting', 'warn') : badge('refused', 'bad');
}

function shortVersion(version: string | undefined): Html | undefined {
  return version === undefined ? undefined : html`<code>${version.slice(0, 12)}</code>`;
}

function versionTable(object: ObjectDetail, visit: Visit): Html {
  const { versions } = object;
  const link = (from: number, to: number) => `${objectPath(object)}/versions?from=${from}&to=${to}`;
  return table({
    caption: 'Versions',
    rows: versions.map((version, index) => ({ ...version, previous: versions[index + 1]?.generation })),
    url: visit.url,
    rowId: ({ generation }) => `version-${generation}`,
    empty: emptyState('No version is known.'),
    note: html`The xDS server keeps the last ten in memory.`,
    columns: [
      { title: 'Version', cell: ({ generation }) => generation },
      { title: 'State', cell: versionState },
      { title: 'Read', cell: ({ readAt }) => time(readAt, visit.nowMs) ?? 'before the start of the server' },
      {
        title: 'Compare',
        cell: ({ generation, previous }) =>
          html`${previous !== undefined && html`<a href="${link(previous, generation)}">with version ${previous}</a>`}
${generation !== object.generation && html`<a href="${link(generation, object.generation)}">with the newest, and put back</a>`}`,
      },
    ],
  });
}

function versionState({ inForce, accepted }: Schemas['ObjectVersion']): Html {
  if (inForce) return badge('in force', 'ok');
  if (accepted === undefined) return badge('replaced');
  return accepted ? badge('accepted') : badge('refused', 'bad');
}
