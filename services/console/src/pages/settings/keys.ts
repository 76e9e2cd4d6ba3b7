import { isDeepStrictEqual } from 'node:util';
import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import { formatDuration } from '@tollgate/kit/time';
import { toAnswers } from '../../http/problems.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { emptyState, problem } from '../../ui/messages.ts';
import { quoteArgument } from '../../ui/shell.ts';
import { table } from '../../ui/table.ts';
import { badge, command, copyable, details, time } from '../../ui/text.ts';
import { asksAllAuthServers, authCoverage, settingsPage } from './page.ts';

/** The keys of a replica, and the step of their rotation. */
type KeyState = AuthSchemas['SigningKeys'];

/** The signing keys of the auth server, with the next step of their rotation. */
export async function viewKeys(visit: Visit): Promise<View> {
  const results = await visit.services.authServers((client) => client.GET('/admin/signing-keys'));
  const { problems } = toAnswers(results, visit);
  const states = results.flatMap(({ url, result }) => (result.ok ? [{ url, state: result.value }] : []));
  const [first] = states;
  const content = html`${problems}${viewDifference(states)}
${first !== undefined && html`${keyTable(first.state, visit)}${authCoverage(results, visit)}${!asksAllAuthServers(results, visit) && sameKeys}${rotation(first.state, visit)}`}`;
  return settingsPage(visit, 'Signing keys', content);
}

const sameKeys = html`<p class="dim">Replicas that were not asked may have other keys: wait two minutes after each change of the keys before the next step.</p>`;

/** During a step, replicas read the new file one after the other. */
function viewDifference(
  states: readonly { readonly url: string; readonly state: KeyState }[],
): Html | undefined {
  const describeKeys = ({ keys }: KeyState) => keys.map(({ kid, state }) => `${kid} ${state}`).sort();
  const [first, ...others] = states;
  if (
    first === undefined ||
    others.every(({ state }) => isDeepStrictEqual(describeKeys(state), describeKeys(first.state)))
  )
    return undefined;
  const lists = states.map(({ url, state }) => html`<div>${url}: ${describeKeys(state).join(', ')}</div>`);
  return problem({
    title: 'Replicas have different keys',
    text: html`Wait until all have read the new keys, which takes up to two minutes in Kubernetes, before the next step.${lists}`,
  });
}

const states = {
  signs: badge('signs', 'ok'),
  upcoming: badge('upcoming'),
  verifies: badge('verifies only'),
} as const;

function keyTable({ keys }: KeyState, { url, nowMs }: Visit): Html {
  return table({
    caption: 'Signing keys',
    rows: keys,
    url,
    empty: emptyState('There are no keys.'),
    rowId: ({ kid }) => `key-${kid}`,
    columns: [
      { title: 'Key id', cell: ({ kid }) => (kid === '' ? 'without an id' : copyable(kid)) },
      { title: 'Algorithm', cell: ({ algorithm }) => algorithm },
      { title: 'State', cell: ({ state }) => states[state] },
      {
        title: 'In the JWKS',
        cell: ({ in_jwks: isPublished }) => (isPublished ? 'yes' : 'no, it is a secret'),
      },
      { title: 'Added', cell: ({ added_at: at }) => time(at, nowMs) },
      { title: 'Signs since', cell: ({ signs_since: at }) => time(at, nowMs) },
      { title: 'Replaced', cell: ({ replaced_at: at }) => time(at, nowMs) },
      { title: 'Last verified', cell: ({ last_verified_at: at }) => time(at, nowMs) },
    ],
    note: html`Last verified: when a replica verified a signature that it had not seen before.`,
  });
}

const steps = {
  new: 'Add a key, so that all verifiers learn it',
  rotate: 'Sign with the new key',
  retire: 'Remove the former key, once its tokens have expired',
} as const;

function rotation({ next, variable, file, token_lifetime: lifetime }: KeyState, { nowMs }: Visit): Html {
  const { step, reason, not_before: from } = next;
  const isEarly = from !== undefined && Date.parse(from) > nowMs;
  const when = isEarly ? html`${time(from, nowMs)}: ${reason}` : html`now: ${reason}`;
  const local = file === undefined || file.startsWith('/etc/tollgate/') ? 'keys.json' : file;
  return html`<section class="card stack"><h2>Rotation</h2>
<ol>${Object.entries(steps).map(
    ([name, text]) =>
      html`<li${name === step && html` aria-current="step"`}>${text} ${name === step && badge('next', isEarly ? 'neutral' : 'ok')}</li>`,
  )}</ol>
${details({
  'Keys are in': file === undefined ? variable : `${variable} ${file}`,
  'Tokens are valid for up to': formatDuration(lifetime * 1000),
  'Next step': when,
})}
<p>With the keys in a file:</p>${command(`tollgate signing-keys ${step} --file ${quoteArgument(local)}`)}
<p>With the keys in a Secret of Kubernetes:</p>${command(
    `kubectl -n tollgate get secret auth-keys -o jsonpath='{.data.keys\\.json}' | base64 -d | tollgate signing-keys ${step} --file - --emit kubernetes | kubectl apply -f -`,
  )}
${variable === 'SVC_JWT_SECRET' && html`<p class="dim">Tokens are signed with SVC_JWT_SECRET. Set it for the first command, so that its tokens stay valid, and set SVC_JWT_KEYS_FILE of the auth server to the file.</p>`}
${variable === 'SVC_JWT_KEYS' && html`<p class="dim">The auth server reads SVC_JWT_KEYS at its start. With SVC_JWT_KEYS_FILE, it reads changed keys while it runs.</p>`}</section>`;
}
