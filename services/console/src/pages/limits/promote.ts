import { type Html, html } from '@tollgate/kit/html';
import { parsePolicyDomain } from '@tollgate/policies/definition/resource-shape';
import { findTrials, nameOf, type PromotableTrial } from '@tollgate/policies/files/trial';
import { formatYaml } from '@tollgate/yaml/documents';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { quoteArgument } from '../../ui/shell.ts';
import { card, command } from '../../ui/text.ts';
import { valueDifference } from '../policies/difference.ts';
import { applyCommand, type ObjectName } from '../policies/page.ts';
import { canReadObjects, readNewest, type StoredObject } from '../policies/stored.ts';
import { limitsPage } from './page.ts';

/** Objects of a domain that are read: each is a request. */
const maxObjects = 100;

/** How to put the trials of a domain into force. The console changes no object. */
export async function viewPromotion(visit: Visit): Promise<View> {
  const domain = visit.query('domain') ?? '';
  const trials = canReadObjects(visit) ? findTrials(await readObjects(visit, domain)) : [];
  const content =
    trials.length > 0
      ? html`${trials.map((trial) => promotionCards(trial))}`
      : card('Files of limiter rules', viewFilePromotion(visit, domain));
  return limitsPage(visit, `Put the trial of ${domain} into force`, content);
}

async function readObjects(visit: Visit, domain: string): Promise<readonly StoredObject[]> {
  const names = await listNames(visit, domain);
  const found = await Promise.all(names.map((name) => readNewest(visit, name)));
  return found.flatMap((object) => object ?? []);
}

/** An access policy has a domain of its own. */
async function listNames(visit: Visit, domain: string): Promise<readonly ObjectName[]> {
  const policy = parsePolicyDomain(domain);
  if (policy !== undefined) return [{ kind: 'AccessPolicy', ...policy }];
  const query = { kind: 'RateLimitConfig', domain, limit: maxObjects } as const;
  const { objects } = await visit.services.xds((client) => client.GET('/v1/objects', { params: { query } }));
  return objects;
}

function promotionCards({ trial, live, promotion }: PromotableTrial<StoredObject>): Html {
  const before = live ?? trial;
  const { namespace, name } = nameOf(before.manifest);
  const title = `${String(before.manifest.kind)} ${namespace}/${name}`;
  if (!promotion.ok)
    return card(title, html`<p>The trial cannot be put into force: ${promotion.message}.</p>`);
  const { manifest, replacesTrial } = promotion;
  return html`${card(`${title}: the change`, valueDifference(before.manifest, manifest))}
${card(`Apply ${title}`, howToPromote({ trial, replacesTrial, file: before.file, yaml: formatYaml(manifest) }))}`;
}

function howToPromote({
  trial,
  replacesTrial,
  file,
  yaml,
}: {
  readonly trial: StoredObject;
  readonly replacesTrial: boolean;
  readonly file: string | undefined;
  readonly yaml: string;
}): Html {
  const { namespace, name } = nameOf(trial.manifest);
  if (file !== undefined)
    return html`<p>In the folder of the xDS server, replace ${file} (file, and number of its document) by this text${replacesTrial && html`, and remove ${trial.file}`}.</p>${command(yaml)}`;
  const remove = replacesTrial ? `\nkubectl delete ratelimitconfig -n ${namespace} ${name}` : '';
  return html`<p>With your rights in the cluster${replacesTrial && ', and delete the object on trial'}:</p>${command(`${applyCommand(yaml)}${remove}`)}`;
}

function viewFilePromotion(visit: Visit, domain: string): Html {
  if (domain === '') return emptyState('Choose a domain on the page of trials.');
  const reason = canReadObjects(visit)
    ? `The xDS server has no object on trial with the domain ${domain}: if the limiters read files, move the candidate.`
    : 'The console cannot read objects of an xDS server: if the limiters read files, move the candidate.';
  const folder = '"$RUNTIME_ROOT/$CANDIDATE_RUNTIME_SUBDIRECTORY/config"';
  return html`<p>${reason} The file of the domain in the candidate folder replaces the one in force:</p>${command(
    `ls ${folder}\nmv ${folder}/FILE.yaml "$RUNTIME_ROOT/$RUNTIME_SUBDIRECTORY/config/"`,
  )}<p>Or read both folders of manifests with the command line:</p>${command(`tollgate limits trial promote ${quoteArgument(domain)} --files policies/`)}`;
}
