import { type Html, html } from '@tollgate/kit/html';
import { updateOwnUser } from '../account/update.ts';
import { signOut } from '../sessions/sessions.ts';
import type { User } from '../users/user.ts';
import { areaForm, areaPage } from './area.ts';
import { codeContacts } from './code.ts';
import { field, form, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { Problem } from './problems.ts';
import { takeTyped } from './typed.ts';
import type { Owner, Visit } from './visit.ts';

/** Profile of the user. */
export const accountPage = areaPage('account', viewAccount);

export const profileForm = areaForm(
  accountPage,
  'profile',
  async (visit, owner) => {
    const data = { full_name: (visit.form.full_name ?? '').trim() };
    const update = { data, challenge: undefined, redirectTo: '' };
    await updateOwnUser(visit.context, owner, update, visit.metadata);
    return 'profile';
  },
  { limiter: 'otp' },
);

export const emailForm = areaForm(
  accountPage,
  'email',
  async (visit, owner) => {
    // The link leads to a code that is not exchanged: the session is already here.
    const update = {
      email: visit.form.email,
      challenge: visit.challenge('email change'),
      redirectTo: visit.url('account'),
    };
    const { newEmail } = await updateOwnUser(visit.context, owner, update, visit.metadata);
    return newEmail === '' ? 'profile' : 'email';
  },
  { limiter: 'otp', isSensitive: true },
);

export const signOutForm: PageDefinition = {
  name: 'sign-out',
  access: 'everyone',
  hasPage: false,
  view: (visit, outcome) =>
    visit.owner === undefined ? viewSignedOut(visit, outcome) : accountPage.view(visit, outcome),
  async submit(visit) {
    const { context, owner, metadata } = visit;
    if (owner !== undefined) {
      const { user, session } = owner;
      await signOut(context, { user, sessionId: session.id, scope: 'with_clients' }, metadata);
      visit.signOut();
    }
    return visit.redirect('sign-in');
  },
};

function viewSignedOut(visit: Visit, { problem }: Outcome): View {
  const { texts } = visit;
  return {
    title: texts.yourAccount,
    content: html`${problemSummary(problem)}
<p><a href="${visit.path('sign-in')}">${texts.signIn}</a></p>`,
  };
}

function viewAccount(visit: Visit, { user }: Owner, { problem }: Outcome): Html {
  const { texts } = visit;
  return html`<p>${texts.signedInAs} <strong>${user.email || user.phone || user.id}</strong></p>
${form(visit, { action: visit.path('sign-out'), content: html`<button class="secondary">${texts.signOut}</button>` })}
<p class="after"><a href="${visit.path('accounts')}">${texts.useAnotherAccount}</a></p>
${profileSection(visit, user, problem)}`;
}

function profileSection(visit: Visit, user: User, problem: Problem | undefined): Html {
  const { texts } = visit;
  const { full_name: fullName, name } = user.userMetadata;
  const known = [fullName, name].find((value) => typeof value === 'string');
  const typed = { ...takeTyped(visit), ...visit.form };
  const profile = html`${field(
    {
      name: 'full_name',
      label: texts.name,
      autocomplete: 'name',
      value: visit.form.full_name ?? (typeof known === 'string' ? known : ''),
      isOptional: true,
    },
    problem,
  )}
<button class="secondary">${texts.saveName}</button>`;
  const email = html`${field(
    {
      name: 'email',
      label: texts.emailAddress,
      type: 'email',
      autocomplete: 'email',
      value: typed.email ?? user.email,
      hint: user.newEmail === '' ? undefined : texts.waitingFor(user.newEmail),
    },
    problem,
  )}
<button class="secondary">${texts.changeEmail}</button>`;
  const { settings } = visit.context;
  const mayChangePhone =
    settings.externalPhoneEnabled && (settings.smsAutoconfirm || codeContacts(visit)?.phone === true);
  return html`<section aria-labelledby="profile-title">
<h2 id="profile-title">${texts.profile}</h2>
${form(visit, { action: visit.path('profile'), content: profile })}
${settings.externalEmailEnabled && form(visit, { action: visit.path('email'), content: email })}
${mayChangePhone && user.newPhone !== '' && html`<p class="after"><a href="${visit.path('phone-code')}">${texts.phoneCodeTitle}</a></p>`}
${mayChangePhone && form(visit, { action: visit.path('phone'), content: phoneContent(visit, { user, typed: typed.phone, problem }) })}
</section>`;
}

function phoneContent(
  { texts }: Visit,
  {
    user: { phone, newPhone },
    typed,
    problem,
  }: { readonly user: User; readonly typed: string | undefined; readonly problem: Problem | undefined },
): Html {
  const input = {
    name: 'phone',
    label: texts.phoneNumber,
    autocomplete: 'tel',
    value: typed ?? (phone && `+${phone}`),
    hint: newPhone === '' ? undefined : texts.waitingFor(`+${newPhone}`),
  };
  return html`${field(input, problem)}
<button class="secondary">${phone === '' ? texts.addPhone : texts.changePhone}</button>`;
}
