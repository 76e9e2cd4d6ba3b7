import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { problem } from '../../ui/messages.ts';
import { card } from '../../ui/text.ts';
import { textDifference } from './difference.ts';
import { howToApply, objectPath, policiesPage, readName, readObject, type Schemas } from './page.ts';
import { readManifest } from './stored.ts';

/** The difference of two versions, which are in the URL, and how to put back the first one. */
export async function viewVersions(visit: Visit): Promise<View> {
  const name = readName(visit);
  const object = await readObject(visit, name);
  const { from, to } = chosenVersions(object, visit);
  const [before, after] = await Promise.all(
    [from, to].map((generation) => readManifest(visit, { ...name, generation })),
  );
  const url = new URL(visit.url);
  url.searchParams.set('from', String(from));
  url.searchParams.set('to', String(to));
  const choices = Object.fromEntries(
    object.versions.map((version) => [version.generation, describeVersion(version)]),
  );
  const content = html`<p><a href="${objectPath(name)}">${name.kind} ${name.namespace}/${name.name}</a></p>
${filters(
  [
    { name: 'from', label: 'Version', choices },
    { name: 'to', label: 'Compared with', choices },
  ],
  url,
)}
${card(`Version ${from} compared with ${to}`, textDifference(before ?? '', after ?? ''))}
${card(`Put version ${from} into force`, html`${refusal(object, from)}${howToApply(before ?? '', object.file)}`)}`;
  return policiesPage(visit, `Versions of ${name.namespace}/${name.name}`, content);
}

/** By default, the version in force with the newest, or the one before the newest. */
function chosenVersions({ generation, inForce, versions }: Schemas['ObjectDetail'], visit: Visit) {
  const other = inForce === undefined || inForce === generation ? versions[1]?.generation : inForce;
  return {
    from: toGeneration(visit.query('from')) ?? other ?? generation,
    to: toGeneration(visit.query('to')) ?? generation,
  };
}

function toGeneration(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function describeVersion({ generation, inForce, accepted }: Schemas['ObjectVersion']): string {
  if (inForce) return `${generation}, in force`;
  return accepted === false ? `${generation}, refused` : String(generation);
}

function refusal({ versions }: Schemas['ObjectDetail'], from: number): Html | undefined {
  const version = versions.find(({ generation }) => generation === from);
  if (version?.accepted !== false) return undefined;
  return problem({
    title: `Version ${from} was refused`,
    text: 'It would be refused again: choose another one.',
  });
}
