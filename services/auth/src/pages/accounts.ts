import { type Html, html } from '@tollgate/kit/html';
import { signOut } from '../sessions/sessions.ts';
import { appNotice } from './app-target.ts';
import { openOtherAccounts, writeAccounts } from './browser-accounts.ts';
import { continueAs } from './completion.ts';
import { form, problemSummary } from './forms.ts';
import { type Outcome, type PageDefinition, sendView, type View } from './page.ts';
import type { Owner, Visit } from './visit.ts';

/** Asks which of the accounts that are signed in here to use, and names the app that asks. */
export const accountsPage: PageDefinition = {
  name: 'accounts',
  access: 'everyone',
  view: viewAccounts,
  async show(visit) {
    const accounts = await listAccounts(visit);
    return accounts.length === 0
      ? visit.redirect('sign-in', { other: 'true' })
      : sendView(visit, viewList(visit, accounts, {}));
  },
};

/** Continues with one of the accounts. */
export const accountUseForm: PageDefinition = {
  name: 'account-use',
  access: 'everyone',
  hasPage: false,
  view: viewAccounts,
  limiter: 'token',
  async submit(visit) {
    const { owner, form: fields } = visit;
    if (owner !== undefined && fields.session_id === owner.session.id) return continueAs(visit, owner);
    const others = await openOtherAccounts(visit);
    const account = others.find(({ session }) => session.id === fields.session_id);
    if (account === undefined) return visit.redirect('accounts');
    const before = owner === undefined ? [] : [{ ...owner, refreshToken: visit.refreshToken }];
    writeAccounts(visit, [...before, ...others.filter((other) => other !== account)]);
    return continueAs(visit, visit.use(account));
  },
};

/** Signs one of the accounts out. */
export const accountEndForm: PageDefinition = {
  name: 'account-end',
  access: 'everyone',
  hasPage: false,
  view: viewAccounts,
  async submit(visit) {
    const { context, owner, form: fields, metadata } = visit;
    const others = await openOtherAccounts(visit);
    const isCurrent = owner !== undefined && fields.session_id === owner.session.id;
    const account = isCurrent ? owner : others.find(({ session }) => session.id === fields.session_id);
    if (account !== undefined) {
      const { user, session } = account;
      await signOut(context, { user, sessionId: session.id, scope: 'with_clients' }, metadata);
    }
    if (isCurrent) visit.signOut();
    else
      writeAccounts(
        visit,
        others.filter((other) => other !== account),
      );
    return visit.redirect('accounts');
  },
};

async function viewAccounts(visit: Visit, outcome: Outcome): Promise<View> {
  return viewList(visit, await listAccounts(visit), outcome);
}

async function listAccounts(visit: Visit): Promise<readonly Owner[]> {
  const { owner } = visit;
  return [...(owner === undefined ? [] : [owner]), ...(await openOtherAccounts(visit))];
}

function viewList(visit: Visit, accounts: readonly Owner[], { problem }: Outcome): View {
  const { texts } = visit;
  return {
    title: texts.chooseAccount,
    content: html`${problemSummary(problem)}
${appNotice(visit)}
<ul class="items">${accounts.map((account) => accountItem(visit, account))}</ul>
<p><a class="button" href="${visit.path('sign-in', { other: 'true' })}">${texts.useAnotherAccount}</a></p>`,
  };
}

function accountItem(visit: Visit, { user, session }: Owner): Html {
  const { texts } = visit;
  const name = user.email || user.phone || texts.guestAccount;
  const id = html`<input type="hidden" name="session_id" value="${session.id}">`;
  return html`<li>${form(visit, {
    action: visit.path('account-use'),
    content: html`${id}<button class="link">${texts.continueAs(name)}</button>`,
  })}
${form(visit, {
  action: visit.path('account-end'),
  content: html`${id}<button class="link" aria-label="${texts.signOut}: ${name}">${texts.signOut}</button>`,
})}</li>`;
}
