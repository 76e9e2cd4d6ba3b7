import { type Html, html } from '@tollgate/kit/html';
import type { ApiKey, OwnerWithKeys } from '../api-keys/api-key.ts';
import { createApiKey, getOwnKey, getOwnKeyForChange, revokeApiKey, rotateApiKey } from '../api-keys/keys.ts';
import { requireKeyAssurance, requireSelfService } from '../api-keys/routes.ts';
import { changeKeys, type OrganizationKeysContext } from '../organizations/keys.ts';
import { requireMembership } from '../organizations/organizations.ts';
import { isPermitted } from '../organizations/roles.ts';
import type { Membership } from '../organizations/store.ts';
import { areaForm, areaPage, time } from './area.ts';
import { field, form, problemSummary } from './forms.ts';
import { readOrganizationId } from './organizations.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import type { Owner, Visit } from './visit.ts';

/** How long a replaced key is valid, as its page says. */
const grace = '24h';

/** API keys of the user. */
export const apiKeysPage = areaPage('api-keys', async (visit, { user }) => {
  const keys = await visit.context.store.apiKeys.listOwned(user.id);
  const { apiKeysText: text } = visit.texts;
  return keyList(visit, { keys, text, query: {}, revoke: visit.path('api-key-revoke') });
});

/** Ends a key of the user. A session that may not create keys may do this. */
export const revokeApiKeyForm = areaForm(apiKeysPage, 'api-key-revoke', async (visit, { user }) => {
  const { context, metadata } = visit;
  const key = await getOwnKey(context, { userId: user.id }, visit.form.key_id ?? '');
  await revokeApiKey(context, key, { actor: user, metadata });
  return 'api-key';
});

/** API keys on the page of an organization, for members whose role permits to see them. */
export async function organizationKeySection(
  visit: Visit,
  { organization: { id }, role }: Membership,
): Promise<Html | undefined> {
  const { texts, context } = visit;
  const { settings, store } = context;
  const isEnabled = settings.apiKeysEnabled && settings.apiKeysSelfService;
  if (!isEnabled || !isPermitted(settings, role, 'keys:read')) return undefined;
  const list = {
    keys: await store.apiKeys.listOwned(id),
    text: texts.organizationKeysText,
    query: { organization: id },
    revoke: isPermitted(settings, role, 'keys:write')
      ? visit.path('organization-key-revoke', { id })
      : undefined,
  };
  return html`<section aria-labelledby="api-keys-title">
<h2 id="api-keys-title">${texts.apiKeys}</h2>
${keyList(visit, list)}
</section>`;
}

interface KeyList {
  readonly keys: readonly ApiKey[];
  /** The text of a list without keys. */
  readonly text: string;
  /** Parameters of the page that creates and replaces keys. */
  readonly query: Readonly<Record<string, string>>;
  /** Target of the form that revokes a key. Undefined: keys cannot be changed. */
  readonly revoke: string | undefined;
}

function keyList(visit: Visit, list: KeyList): Html {
  const { texts } = visit;
  const { keys, text, query, revoke } = list;
  return html`${keys.length === 0 ? html`<p>${text}</p>` : html`<ul class="items">${keys.map((key) => keyItem(visit, key, list))}</ul>`}
${revoke !== undefined && html`<p><a class="button" href="${visit.path('api-key', query)}">${texts.createApiKey}</a></p>`}`;
}

function keyItem(visit: Visit, key: ApiKey, { query, revoke }: KeyList): Html {
  const { texts, context } = visit;
  const { id, name, prefix, last4, disabled, expires_at: expiresAt, last_used_at: usedAt } = key;
  const isExpired = expiresAt !== null && expiresAt.getTime() <= context.nowMs();
  const content = html`<input type="hidden" name="key_id" value="${id}">
<button class="link" aria-label="${texts.revokeApiKey}: ${name}">${texts.revokeApiKey}</button>`;
  const changes =
    revoke !== undefined &&
    html`<a href="${visit.path('api-key', { ...query, rotate: id })}" aria-label="${texts.replaceApiKey}: ${name}">${texts.replaceApiKey}</a>
${form(visit, { action: revoke, content })}`;
  return html`<li><span>${name}${(disabled || isExpired) && html` <strong>(${texts.apiKeyEnded})</strong>`}<br>
<small><code>${prefix}_…${last4}</code>, ${usedAt === null ? texts.neverUsed : html`${texts.lastUsed} ${time(usedAt)}`}${
    expiresAt !== null && !isExpired && html`, ${texts.validUntil} ${time(expiresAt)}`
  }</small></span>
${changes}</li>`;
}

/** The user or the organization whose keys the page is about. */
interface Managed {
  readonly owner: OwnerWithKeys;
  readonly maxKeys: number;
  readonly byMember: boolean;
  /** Parameters of the page. */
  readonly query: Readonly<Record<string, string>>;
  /** Link to the page that lists the keys. */
  readonly back: Html;
  change<T>(work: (context: OrganizationKeysContext) => Promise<T>): Promise<T>;
}

/** @throws AppError `feature_disabled`, and as `requireMembership` */
async function findManaged(visit: Visit, caller: Owner): Promise<Managed> {
  const { context, query, texts } = visit;
  const { settings } = context;
  requireSelfService(context);
  if (query.organization === undefined || !settings.organizationsEnabled)
    return {
      owner: { userId: caller.user.id },
      maxKeys: settings.apiKeysPerUser,
      byMember: false,
      query: {},
      back: html`<a href="${visit.path('api-keys')}">${texts.backToAccount}</a>`,
      change: (work) => work(context),
    };
  const id = readOrganizationId(query.organization);
  const membership = await requireMembership(context, id, { ...caller, permission: 'keys:write' });
  return {
    owner: { orgId: id },
    maxKeys: settings.apiKeysPerOrganization,
    byMember: true,
    query: { organization: id },
    back: html`<a href="${visit.path('organization', { id })}">${membership.organization.name}</a>`,
    change: (work) => changeKeys(context, { ...membership, actor: caller.user }, work),
  };
}

/** Creates an API key of the user or an organization, or replaces one. It is shown once. */
export const apiKeyPage: PageDefinition = {
  name: 'api-key',
  access: 'user',
  isSensitive: true,
  view: viewRequest,
  async submit(visit) {
    const { owner: caller, metadata, form: values } = visit;
    if (caller === undefined) return visit.redirect('sign-in');
    const managed = await findManaged(visit, caller);
    requireKeyAssurance(visit.context, caller);
    const request = { actor: caller.user, metadata };
    const { owner, maxKeys, byMember } = managed;
    const { rotate: id = '', name = '' } = values;
    const { text } = await managed.change(async (context) => {
      if (id === '') return createApiKey(context, { owner, input: { name }, maxKeys, byMember }, request);
      const old = await getOwnKeyForChange(context, owner, { id, nowMs: metadata.nowMs });
      return rotateApiKey(context, { old, grace, maxKeys, byMember }, request);
    });
    return sendView(visit, viewKey(visit, text, managed));
  },
};

async function viewRequest(visit: Visit, { problem }: Outcome): Promise<View> {
  const { texts, owner: caller, query, form: values } = visit;
  requireSelfService(visit.context);
  // The page is for users: `access`.
  if (caller === undefined) return { title: texts.createApiKey, content: html`` };
  const managed = await findManaged(visit, caller);
  const rotated = values.rotate ?? query.rotate ?? '';
  const isRotation = rotated !== '';
  const title = isRotation ? texts.replaceApiKey : texts.createApiKey;
  const fields = isRotation
    ? html`<p>${texts.replaceApiKeyText((await getOwnKey(visit.context, managed.owner, rotated)).name)}</p>
<input type="hidden" name="rotate" value="${rotated}">`
    : field(
        {
          name: 'name',
          label: texts.name,
          autocomplete: 'off',
          hint: texts.apiKeyNameHint,
          value: values.name,
        },
        problem,
      );
  return {
    title,
    content: html`${problemSummary(problem)}
${form(visit, { action: visit.path('api-key', managed.query), content: html`${fields}<button>${title}</button>` })}
<p class="after">${managed.back}</p>`,
  };
}

function viewKey({ texts }: Visit, key: string, { back }: Managed): View {
  return {
    title: texts.apiKey,
    content: html`<p>${texts.keepApiKey}</p>
<p><code>${key}</code></p>
<p class="after">${back}</p>`,
  };
}
