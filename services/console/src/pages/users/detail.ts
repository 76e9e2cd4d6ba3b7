import { type Html, html } from '@tollgate/kit/html';
import { actionButtons, actionColumn } from '../../http/actions.ts';
import { orProblem } from '../../http/problems.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { ServiceError } from '../../services/session-clients.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, card, copyable, details, time } from '../../ui/text.ts';
import { keyColumns } from '../api-keys/list.ts';
import { entryTable } from '../audit/entry-table.ts';
import { userActionSet } from './actions.ts';
import { viewLimits } from './limits.ts';
import { viewSessions } from './sessions.ts';
import { displayName, readUser, type User, type UserPath, userPlan, userState } from './user.ts';

/** One user. */
export async function viewUser(visit: Visit): Promise<View> {
  const path = { user_id: visit.param('id') };
  const user = await readUser(visit);
  const [sessions, limits, keys, factors, passkeys, audit] = await Promise.all([
    orProblem(viewSessions(visit, path), visit),
    orProblem(viewLimits(visit, user), visit),
    orProblem(viewApiKeys(visit, path), visit),
    orProblem(viewFactors(visit, path), visit),
    orProblem(viewPasskeys(visit, path), visit),
    orProblem(viewNewestActions(visit, path), visit),
  ]);
  return {
    title: displayName(user),
    content: html`${actionButtons(userActionSet, user, visit)}${links(user, visit)}<div class="grid">${profile(user, visit.nowMs)}${metadata(user)}</div>
${sessions}${limits}${keys}${factors}${passkeys}${identities(user, visit)}${audit}`,
  };
}

/** Links to other pages about the user. */
function links({ id }: User, visit: Visit): Html {
  const organizations = html`<a href="/organizations?user_id=${id}">Organizations</a>`;
  return html`<p class="actions">${visit.can('organizations') && organizations}</p>`;
}

function profile(user: User, nowMs: number): Html {
  return card(
    'Profile',
    details({
      State: userState(user, nowMs),
      Id: copyable(user.id),
      Email: user.email === '' ? undefined : copyable(user.email),
      Phone: user.phone === '' ? undefined : copyable(`+${user.phone}`),
      Role: user.role,
      Plan: userPlan(user),
      'Banned until': time(user.banned_until, nowMs),
      'Last sign-in': time(user.last_sign_in_at, nowMs),
      Confirmed: time(user.confirmed_at, nowMs),
      Created: time(user.created_at, nowMs),
      Changed: time(user.updated_at, nowMs),
    }),
  );
}

function metadata({ app_metadata: app, user_metadata: own }: User): Html {
  return html`<section class="card stack"><div><h2>Metadata of the application</h2><pre>${JSON.stringify(app, null, 2)}</pre></div>
<div><h2>Metadata of the user</h2><pre>${JSON.stringify(own, null, 2)}</pre></div></section>`;
}

/** API keys of the user. */
async function viewApiKeys(visit: Visit, { user_id: id }: UserPath): Promise<Html | undefined> {
  if (!visit.can('api-keys')) return undefined;
  const query = { user_id: id, limit: '20' };
  const keys = await visit.services
    .auth((client) => client.GET('/admin/api-keys', { params: { query } }))
    .then(({ api_keys: found }) => found)
    .catch(noneIfOff);
  return (
    keys &&
    html`${table({
      caption: 'API keys',
      rows: keys,
      url: visit.url,
      empty: emptyState('The user has no API key.'),
      rowId: ({ id: keyId }) => `key-${keyId}`,
      columns: keyColumns(visit).filter(({ title }) => title !== 'Owner'),
    })}<p><a href="/api-keys?user_id=${id}">All API keys of this user</a></p>`
  );
}

const offCodes = new Set(['feature_disabled', 'passkey_disabled']);

/** A feature that is off is no problem of a user. */
function noneIfOff(error: unknown): undefined {
  if (error instanceof ServiceError && offCodes.has(error.code)) return undefined;
  throw error;
}

async function viewFactors(visit: Visit, path: UserPath): Promise<Html> {
  const factors = await visit.services.auth((client) =>
    client.GET('/admin/users/{user_id}/factors', { params: { path } }),
  );
  return table({
    caption: 'Factors',
    rows: factors,
    url: visit.url,
    empty: emptyState('The user has no second factor.'),
    rowId: ({ id }) => `factor-${id}`,
    columns: [
      { title: 'Name', cell: (factor) => factor.friendly_name || factor.factor_type },
      { title: 'Type', cell: (factor) => factor.factor_type },
      { title: 'State', cell: ({ status }) => badge(status, status === 'verified' ? 'neutral' : 'warn') },
      { title: 'Created', cell: (factor) => time(factor.created_at, visit.nowMs) },
      ...actionColumn(visit, 'users/change', ({ id }: { readonly id: string }) => ({
        Remove: `/users/${path.user_id}/factors/${id}/remove`,
      })),
    ],
  });
}

async function viewPasskeys(visit: Visit, path: UserPath): Promise<Html | undefined> {
  const passkeys = await visit.services
    .auth((client) => client.GET('/admin/users/{user_id}/passkeys', { params: { path } }))
    .catch(noneIfOff);
  return (
    passkeys &&
    table({
      caption: 'Passkeys',
      rows: passkeys,
      url: visit.url,
      empty: emptyState('The user has no passkey.'),
      rowId: ({ id }) => `passkey-${id}`,
      columns: [
        { title: 'Name', cell: ({ friendly_name: name }) => name || 'Passkey' },
        { title: 'Last use', cell: (passkey) => time(passkey.last_used_at, visit.nowMs) ?? 'never' },
        { title: 'Created', cell: (passkey) => time(passkey.created_at, visit.nowMs) },
        ...actionColumn(visit, 'users/change', ({ id }: { readonly id: string }) => ({
          Remove: `/users/${path.user_id}/passkeys/${id}/remove`,
        })),
      ],
    })
  );
}

function identities(user: User, visit: Visit): Html {
  return table({
    caption: 'Identities',
    rows: user.identities,
    url: visit.url,
    empty: emptyState('The user has no identity of a provider.'),
    rowId: (identity) => `identity-${identity.identity_id}`,
    columns: [
      { title: 'Provider', cell: ({ provider }) => provider },
      { title: 'Email', cell: ({ email }) => email },
      { title: 'Last sign-in', cell: (identity) => time(identity.last_sign_in_at, visit.nowMs) },
      { title: 'Created', cell: (identity) => time(identity.created_at, visit.nowMs) },
    ],
  });
}

/** The newest entries of the audit log in which the user acted. */
async function viewNewestActions(visit: Visit, { user_id: id }: UserPath): Promise<Html | undefined> {
  if (!visit.can('audit')) return undefined;
  const query = { actor_id: id, limit: '10' };
  const entries = await visit.services.auth((client) => client.GET('/admin/audit', { params: { query } }));
  return html`${entryTable(
    { caption: 'Newest actions', empty: 'The user has done nothing that is audited.' },
    entries,
    visit,
  )}<p><a href="/audit?actor_id=${id}">All actions of this user</a></p>`;
}
