import { type Html, html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import {
  finishRegistration,
  removeOwnPasskey,
  renamePasskey,
  startRegistration,
} from '../passkeys/passkeys.ts';
import type { Passkey } from '../passkeys/store.ts';
import type { User } from '../users/user.ts';
import { backTo, time } from './area.ts';
import { ceremonyView, offersPasskeys, readPasskeyResponse } from './ceremony.ts';
import { field, form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import type { Owner, Visit } from './visit.ts';

/** Passkeys on the page about security. Undefined where they are disabled. */
export async function passkeySection(visit: Visit, user: User): Promise<Html | undefined> {
  const { context, texts } = visit;
  if (!context.settings.passkeyEnabled) return undefined;
  const passkeys = await context.store.passkeys.list(user.id);
  const items = passkeys.map((passkey) => html`<li>${passkeyItem(visit, passkey)}</li>`);
  return html`<section aria-labelledby="passkeys-title">
<h2 id="passkeys-title">${texts.passkeys}</h2>
${items.length === 0 ? html`<p>${texts.passkeysText}</p>` : html`<ul class="items">${items}</ul>`}
${offersPasskeys(context.settings) && html`<p><a class="button" href="${visit.path('passkey-add')}">${texts.addPasskey}</a></p>`}
</section>`;
}

function passkeyItem(visit: Visit, passkey: Passkey): Html {
  const { texts } = visit;
  const { id, createdAt, lastUsedAt } = passkey;
  const name = describePasskey(visit, passkey);
  const link = (page: string, label: string) =>
    html`<a href="${visit.path(page, { passkey: id })}" aria-label="${label}: ${name}">${label}</a>`;
  return html`<span>${name}<br>
<small>${texts.passkeyAdded} ${time(createdAt)}, ${lastUsedAt === undefined ? texts.neverUsed : html`${texts.lastUsed} ${time(lastUsedAt)}`}</small></span>
${link('passkey-name', texts.rename)}
${link('passkey-remove', texts.remove)}`;
}

function describePasskey({ texts }: Visit, { friendlyName }: Passkey): string {
  return friendlyName || texts.passkey;
}

const isEnabled: PageDefinition['isEnabled'] = ({ passkeyEnabled }) => passkeyEnabled;

/** Starts the registration: the response to the form has the script that creates the passkey. */
export const addPasskeyPage: PageDefinition = {
  name: 'passkey-add',
  access: 'user',
  isEnabled: offersPasskeys,
  isSensitive: true,
  limiter: 'passkey',
  view: (visit, { problem }) => ({
    title: visit.texts.addPasskey,
    content: html`${problemSummary(problem)}
<p>${visit.texts.addPasskeyText}</p>
<noscript><p class="problem">${visit.texts.passkeyNeedsScript}</p></noscript>
${form(visit, { action: visit.path('passkey-add'), content: html`<button>${visit.texts.addPasskey}</button>` })}
${backTo(visit, 'security')}`,
  }),
  async submit(visit) {
    const { context, owner, metadata, texts } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const ceremony = {
      kind: 'create',
      challenge: await startRegistration(context, owner, metadata),
      title: texts.addPasskey,
      text: texts.addPasskeyText,
      failure: texts.passkeyNotCreated,
      action: visit.path('passkey-create'),
      after: backTo(visit, 'security'),
    } as const;
    return sendView(visit, ceremonyView(visit, ceremony));
  },
};

/** Registers the passkey that the browser has created. The challenge before it is limited. */
export const createPasskeyForm: PageDefinition = {
  name: 'passkey-create',
  access: 'user',
  isEnabled: offersPasskeys,
  hasPage: false,
  view: addPasskeyPage.view,
  async submit(visit) {
    const { context, owner, metadata } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    await finishRegistration(context, owner, readPasskeyResponse(visit), metadata);
    return visit.redirect('security', { saved: 'passkey' });
  },
};

export const passkeyNamePage = passkeyPage('passkey-name', {
  title: 'renamePasskey',
  content: (visit, passkey, { problem }) =>
    html`${field(
      {
        name: 'friendly_name',
        label: visit.texts.name,
        autocomplete: 'off',
        value: visit.form.friendly_name ?? passkey.friendlyName,
      },
      problem,
    )}
<button>${visit.texts.saveName}</button>`,
  async submit(visit, { user }, id) {
    const friendlyName = (visit.form.friendly_name ?? '').trim();
    await renamePasskey(visit.context, { user, id, friendlyName }, visit.metadata);
    return 'passkey-renamed';
  },
});

export const removePasskeyPage = passkeyPage('passkey-remove', {
  title: 'removePasskey',
  isSensitive: true,
  content: (visit, passkey) =>
    html`<p>${visit.texts.removePasskeyText(describePasskey(visit, passkey))}</p>
<button class="danger">${visit.texts.removePasskey}</button>`,
  async submit(visit, owner, id) {
    await removeOwnPasskey(visit.context, { ...owner, id }, visit.metadata);
    return 'passkey-removed';
  },
});

interface PasskeyPage extends Pick<PageDefinition, 'isSensitive'> {
  readonly title: 'renamePasskey' | 'removePasskey';
  /** Content of the form. */
  readonly content: (visit: Visit, passkey: Passkey, outcome: Outcome) => Html;
  readonly submit: (visit: Visit, owner: Owner, id: string) => Promise<'passkey-renamed' | 'passkey-removed'>;
}

/** A page about the passkey of the query. */
function passkeyPage(name: string, { title, content, submit, isSensitive = false }: PasskeyPage) {
  const page: PageDefinition = {
    ...{ name, access: 'user', isEnabled, isSensitive },
    async view(visit, outcome): Promise<View> {
      const { context, owner, texts } = visit;
      const id = readId(visit);
      const passkeys = owner === undefined ? [] : await context.store.passkeys.list(owner.user.id);
      const passkey = passkeys.find((each) => each.id === id);
      const action = visit.path(name, { passkey: id });
      return {
        title: texts[title],
        content: html`${problemSummary(outcome.problem)}
${
  passkey === undefined
    ? html`<p>${texts.passkeyNotFound}</p>`
    : form(visit, { action, content: content(visit, passkey, outcome) })
}
${backTo(visit, 'security')}`,
      };
    },
    async submit(visit) {
      const { owner } = visit;
      if (owner === undefined) return visit.redirect('sign-in');
      return visit.redirect('security', { saved: await submit(visit, owner, readId(visit)) });
    },
  };
  return page;
}

/** The nil UUID, which no passkey has, for another text. */
function readId({ query: { passkey = '' } }: Visit): string {
  return isUuid(passkey) ? passkey.toLowerCase() : '00000000-0000-0000-0000-000000000000';
}
