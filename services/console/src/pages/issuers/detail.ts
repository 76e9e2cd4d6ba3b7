import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { memberDetails } from '../../ui/members.ts';
import { emptyState, problem } from '../../ui/messages.ts';
import { quoteArgument } from '../../ui/shell.ts';
import { table } from '../../ui/table.ts';
import { card, copyable, details, quantity, time } from '../../ui/text.ts';
import { type Issuer, issuerText, keyState, readIssuer, whereToEdit } from './issuer.ts';

/** Members of the definition besides issuer and claims. */
const labels = {
  audiences: 'Audiences',
  token_type: 'Tokens',
  tenants: 'Tenants',
  algorithms: 'Algorithms',
  discovery: 'Metadata',
  introspection: 'Introspection',
};

/** One issuer, with the state of its keys. */
export async function viewIssuer(visit: Visit): Promise<View> {
  const { file, ...issuer } = await readIssuer(visit);
  return {
    title: issuer.name,
    content: html`${loadProblem(issuer, visit)}<div class="grid"><section class="card stack">
<div><h2>Issuer</h2>${details({ Issuer: copyable(issuerText(issuer)), 'Prefix of user ids': issuer.prefix === 'name' ? `${issuer.name}|` : 'none' })}</div>
${memberDetails(issuer, labels)}</section>
${keys(issuer, visit.nowMs)}${tokens(issuer, visit.nowMs)}</div>
${keyTable(issuer, visit)}${claims(issuer, visit)}
${file !== undefined && html`<p class="dim">${whereToEdit(file)}</p>`}`,
  };
}

function loadProblem({ keys, issuer = '' }: Issuer, { nowMs }: Visit): Html | undefined {
  if (keys.current || keys.problem === undefined) return undefined;
  const consequence =
    keys.loaded_at === undefined
      ? 'Its tokens get 503 until then'
      : 'The last keys stay in use; tokens that are signed with other keys get 503';
  return problem({
    title: 'The keys cannot be loaded',
    text: html`${keys.problem}, ${time(keys.failed_at, nowMs)}. ${consequence}. The auth server retries at least once a minute.`,
    command: issuer === '' ? undefined : `tollgate-auth issuers check ${quoteArgument(issuer)}`,
  });
}

function keys(issuer: Issuer, nowMs: number): Html {
  const { loaded_at: loadedAt, failed_at: failedAt, problem: reason, jwks_uri: uri } = issuer.keys;
  return card(
    'Keys',
    details({
      State: keyState(issuer),
      Loaded: time(loadedAt, nowMs) ?? 'never',
      'Last failure': failedAt === undefined ? 'none' : html`${time(failedAt, nowMs)}: ${reason}`,
      URL: uri === undefined ? undefined : copyable(uri),
    }),
  );
}

function tokens({ tokens, last_used_at: usedAt }: Issuer, nowMs: number): Html {
  return card(
    'Tokens since the start',
    details({
      Accepted: quantity(tokens.accepted, 'tokens'),
      Rejected: quantity(tokens.rejected, 'tokens'),
      Unavailable: quantity(tokens.unavailable, 'tokens'),
      'Last use': time(usedAt, nowMs) ?? 'never',
    }),
  );
}

function keyTable({ keys }: Issuer, visit: Visit): Html {
  const rows = [
    ...keys.usable.map(({ kid = '', kty, crv, alg }) => ({
      kid,
      type: crv === undefined ? kty : `${kty} ${crv}`,
      use: alg ?? 'any algorithm of its type',
    })),
    ...keys.ignored.map(({ kid, reason }) => ({ kid, type: undefined, use: `not used: ${reason}` })),
  ];
  return table({
    caption: 'Published keys',
    rows,
    url: visit.url,
    empty: emptyState('No key is known. Tokens of the issuer are rejected.'),
    columns: [
      { title: 'Key id', cell: ({ kid }) => kid || 'none' },
      { title: 'Type', cell: ({ type }) => type },
      { title: 'Algorithm', cell: ({ use }) => use },
    ],
  });
}

/** Attributes of callers, and where they come from. */
function claims({ claims, kinds, kubernetes }: Issuer, visit: Visit): Html {
  const rows = [
    ...Object.entries({ ...(!kubernetes && { user_id: 'sub' }), ...claims }),
    ...Object.entries(kinds).map(([kind, condition]) => [`is a ${kind} if`, condition] as const),
  ];
  return table({
    caption: 'Claims',
    rows,
    url: visit.url,
    empty: emptyState('Callers have the attributes that all issuers have.'),
    columns: [
      { title: 'Attribute of the caller', cell: ([name]) => name },
      { title: 'Claim', cell: ([, path]) => html`<code>${path}</code>` },
    ],
  });
}
