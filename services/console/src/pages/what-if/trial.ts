import { type Html, html } from '@tollgate/kit/html';
import { putOnTrial } from '@tollgate/policies/files/put-on-trial';
import { hasTrial, nameOf } from '@tollgate/policies/files/trial';
import { formatYaml } from '@tollgate/yaml/documents';
import type { Visit } from '../../http/visit.ts';
import { withInput } from '../../ui/shell.ts';
import { card, command } from '../../ui/text.ts';
import { valueDifference } from '../policies/difference.ts';
import { applyCommand } from '../policies/page.ts';
import { canReadObjects, type StoredObject } from '../policies/stored.ts';
import type { Candidate, CandidateObject } from './candidate.ts';

type Live = ReadonlyMap<CandidateObject, StoredObject>;

/** The candidate beside what is in force. */
export function differences({ objects }: Candidate, live: Live): readonly Html[] {
  return objects.flatMap((object) => {
    const before = live.get(object);
    if (before === undefined) return [];
    const name = `${object.kind} ${object.namespace}/${object.name}`;
    return [card(`${name}: in force, and candidate`, valueDifference(before.manifest, object.manifest))];
  });
}

/** The candidate as what puts it on trial, and how to apply it. */
export function trialCard(visit: Visit, { objects, domains, text }: Candidate, live: Live): Html {
  const parts =
    objects.length > 0
      ? objects.map((object) => objectPart(visit, object, live.get(object)))
      : [filePart([...domains.keys()].join('-'), text)];
  return card(
    'Copy as a trial',
    html`<p>Limiters then compare it with the limits in force on live traffic, without an effect: Limits, Trial shows the result.</p>${parts}`,
  );
}

function objectPart(visit: Visit, object: CandidateObject, live: StoredObject | undefined): Html {
  const { kind, manifest } = object;
  const result = putOnTrial(manifest, live?.manifest);
  if (!result.ok)
    return html`<p>${kind} ${object.namespace}/${object.name} cannot be put on trial: ${result.message}.</p>`;
  const trial = result.manifest;
  const { namespace, name } = nameOf(trial);
  if (!hasTrial(trial))
    return html`<p>${kind} ${namespace}/${name}: no limit differs from the version in force.</p>`;
  const yaml = formatYaml(trial);
  const isNotKnown = kind === 'AccessPolicy' && live === undefined && !canReadObjects(visit);
  const warning =
    isNotKnown &&
    html`<p>The console cannot read the policy in force: if there is one of this name, add the limits to it, because this would replace it.</p>`;
  if (live?.file === undefined)
    return html`${warning}<p>${kind} ${namespace}/${name}, with your rights in the cluster:</p>${command(applyCommand(yaml))}`;
  const how =
    kind === 'AccessPolicy'
      ? html`In the folder of the xDS server, replace ${live.file} (file, and number of its document) by this text:`
      : html`Add this text as a file to the folder of the xDS server:`;
  return html`<p>${how}</p>${command(yaml)}`;
}

/** Files of rules have no marker: those of another folder are on trial. */
function filePart(name: string, text: string): Html {
  const folder = '"$RUNTIME_ROOT/$CANDIDATE_RUNTIME_SUBDIRECTORY/config"';
  const file = name.replaceAll(/[^\w.-]+/g, '-').slice(0, 60);
  return html`<p>Where the limiter reads files, with its settings. The folder has the complete set of candidate rules:</p>${command(withInput(`mkdir -p ${folder} && cat > ${folder}/${file}.yaml`, text))}`;
}
