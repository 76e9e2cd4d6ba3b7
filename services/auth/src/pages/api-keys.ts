import { type Html, html } from '@tollgate/kit/html';
import type { ApiKey } from '../api-keys/api-key.ts';
import { createApiKey, getOwnKey, getOwnKeyForChange, revokeApiKey, rotateApiKey } from '../api-keys/keys.ts';
import { requireKeyAssurance, requireSelfService } from '../api-keys/routes.ts';
import type { User } from '../users/user.ts';
import { field, form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import type { Owner, Visit } from './visit.ts';

/** How long a replaced key is valid, as its page says. */
const grace = '24h';

/** API keys on the account page. Undefined unless users manage keys of their own. */
export async function apiKeySection(visit: Visit, user: User): Promise<Html | undefined> {
  const { texts, context } = visit;
  const { apiKeysEnabled, apiKeysSelfService } = context.settings;
  if (!apiKeysEnabled || !apiKeysSelfService) return undefined;
  const keys = await context.store.apiKeys.listOwned(user.id);
  return html`<section aria-labelledby="api-keys-title">
<h2 id="api-keys-title">${texts.apiKeys}</h2>
${keys.length === 0 ? html`<p>${texts.apiKeysText}</p>` : html`<ul class="items">${keys.map((key) => keyItem(visit, key))}</ul>`}
<p><a class="button" href="${visit.path('api-key')}">${texts.createApiKey}</a></p>
</section>`;
}

function keyItem(visit: Visit, key: ApiKey): Html {
  const { texts, context } = visit;
  const { id, name, prefix, last4, disabled, expires_at: expiresAt, last_used_at: usedAt } = key;
  const isExpired = expiresAt !== null && expiresAt.getTime() <= context.nowMs();
  const content = html`<input type="hidden" name="key_id" value="${id}">
<button class="link" aria-label="${texts.revokeApiKey}: ${name}">${texts.revokeApiKey}</button>`;
  return html`<li><span>${name}${(disabled || isExpired) && html` <strong>(${texts.apiKeyEnded})</strong>`}<br>
<small><code>${prefix}_…${last4}</code>, ${usedAt === null ? texts.neverUsed : html`${texts.lastUsed} ${time(usedAt)}`}${
    expiresAt !== null && !isExpired && html`, ${texts.validUntil} ${time(expiresAt)}`
  }</small></span>
<a href="${visit.path('api-key', { rotate: id })}" aria-label="${texts.replaceApiKey}: ${name}">${texts.replaceApiKey}</a>
${form(visit, { action: visit.path('api-key-revoke'), content })}</li>`;
}

function time(at: Date): Html {
  const iso = at.toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time>`;
}

/** Creates an API key, or replaces one. The new key is shown once. */
export const apiKeyPage: PageDefinition = {
  name: 'api-key',
  access: 'user',
  isSensitive: true,
  view: viewRequest,
  async submit(visit) {
    const { context, owner, form: values } = visit;
    requireSelfService(context);
    if (owner === undefined) return visit.redirect('sign-in');
    requireKeyAssurance(context, owner);
    const request = { actor: owner.user, metadata: visit.metadata };
    const { apiKeysPerUser: maxKeys } = context.settings;
    const rotated = values.rotate ?? '';
    const { text } =
      rotated === ''
        ? await createApiKey(
            context,
            { owner: { userId: owner.user.id }, input: { name: values.name ?? '' }, maxKeys },
            request,
          )
        : await rotateApiKey(
            context,
            {
              old: await getOwnKeyForChange(
                context,
                { userId: owner.user.id },
                {
                  id: rotated,
                  nowMs: visit.metadata.nowMs,
                },
              ),
              grace,
              maxKeys,
            },
            request,
          );
    return sendView(visit, viewKey(visit, text));
  },
};

async function viewRequest(visit: Visit, { problem }: Outcome): Promise<View> {
  const { texts, owner, query, form: values } = visit;
  requireSelfService(visit.context);
  const rotated = values.rotate ?? query.rotate ?? '';
  const isRotation = rotated !== '' && owner !== undefined;
  const title = isRotation ? texts.replaceApiKey : texts.createApiKey;
  const fields = isRotation
    ? html`<p>${texts.replaceApiKeyText((await getOwnKey(visit.context, { userId: owner.user.id }, rotated)).name)}</p>
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
${form(visit, { action: visit.path('api-key'), content: html`${fields}<button>${title}</button>` })}
<p class="after"><a href="${visit.path('account')}">${texts.backToAccount}</a></p>`,
  };
}

function viewKey(visit: Visit, key: string): View {
  const { texts } = visit;
  return {
    title: texts.apiKey,
    content: html`<p>${texts.keepApiKey}</p>
<p><code>${key}</code></p>
<p class="after"><a href="${visit.path('account')}">${texts.backToAccount}</a></p>`,
  };
}

/** Ends a key of the user. A session that may not create keys may do this. */
export async function endApiKey(visit: Visit, owner: Owner): Promise<'api-key'> {
  const { context, metadata } = visit;
  requireSelfService(context);
  const key = await getOwnKey(context, { userId: owner.user.id }, visit.form.key_id ?? '');
  await revokeApiKey(context, key, { actor: owner.user, metadata });
  return 'api-key';
}
