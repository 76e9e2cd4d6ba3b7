import { type Html, html } from '@tollgate/kit/html';
import { actionButtons } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { limitText } from '../../ui/limit-fields.ts';
import { card, copyable, details, time } from '../../ui/text.ts';
import { keySet } from './actions.ts';
import { type ApiKey, isChangeable, keyHint, keyPath, ownerLink, readKey, stateBadge } from './api-key.ts';

/** One API key, without its secret. */
export async function viewKey(visit: Visit): Promise<View> {
  const key = await readKey(visit);
  return {
    title: key.name,
    content: html`${actionButtons(keySet, key, visit)}${!isChangeable(key) && adminKeyNote}<div class="grid">${profile(key, visit)}${rights(key)}</div>`,
  };
}

const adminKeyNote = html`<p class="dim">A key with admin scopes could outlive the session of a person: the console only revokes it. Change it with an admin key and <code>tollgate keys</code>.</p>`;

function profile(key: ApiKey, visit: Visit): Html {
  const { nowMs } = visit;
  const { rotated_from: before } = key;
  return card(
    'Key',
    details({
      State: stateBadge(key, nowMs),
      Id: copyable(key.id),
      Key: keyHint(key),
      Owner: ownerLink(key, visit),
      'Last use': time(key.last_used_at, nowMs) ?? 'never',
      Expires: time(key.expires_at, nowMs) ?? 'never',
      Replaces: before === null ? undefined : html`<a href="${keyPath({ id: before })}">${before}</a>`,
      'Created by': key.created_by || undefined,
      Created: time(key.created_at, nowMs),
      Changed: time(key.updated_at, nowMs),
    }),
  );
}

function rights(key: ApiKey): Html {
  return html`<section class="card stack"><div><h2>Rights and limits</h2>${details({
    Role: key.role ?? 'that of the owner',
    Scopes: key.scopes.join(' ') || 'none',
    'Admin scopes': key.admin_scopes.join(' ') || 'none',
    Plan: key.plan ?? 'that of the owner',
    Limit: limitText(key.limit) ?? 'that of the plan',
    Networks: key.allowed_networks.join(' ') || 'any',
  })}</div><div><h2>Metadata</h2><pre>${JSON.stringify(key.metadata, null, 2)}</pre></div></section>`;
}
