import { type Html, html } from '@tollgate/kit/html';
import { checkMayLink, unlinkIdentity } from '../providers/identities.ts';
import type { User } from '../users/user.ts';
import { areaForm, areaPage } from './area.ts';
import { setups } from './factors.ts';
import { form } from './forms.ts';
import { passkeySection } from './passkeys.ts';
import { providerItems, providerLabel, wayList } from './providers.ts';
import { describeFactor } from './second-factor.ts';
import type { Owner, Visit } from './visit.ts';

/** The ways to sign in: password, passkeys, second factors and identities. */
export const securityPage = areaPage('security', viewSecurity);

async function viewSecurity(visit: Visit, { user }: Owner): Promise<Html> {
  const { texts } = visit;
  return html`<section aria-labelledby="password-title">
<h2 id="password-title">${texts.password}</h2>
<p><a class="button" href="${visit.path('password')}">${user.passwordHash === undefined ? texts.setPassword : texts.changePassword}</a></p>
</section>
${await passkeySection(visit, user)}
${await factorSection(visit, user)}
${await identitySection(visit, user)}`;
}

async function factorSection(visit: Visit, user: User): Promise<Html> {
  const { texts } = visit;
  const { store, settings } = visit.context;
  const codes = await store.recoveryCodes.find(user.id);
  const factors = user.factors.filter(({ status }) => status === 'verified');
  const items = factors.map((factor) => {
    const name = describeFactor(factor, texts);
    const remove = visit.path('factor-remove', { factor: factor.id });
    return html`<li><span>${name}${factor.type === 'recovery_code' && codes && html` (${texts.recoveryCodesLeft(codes.unused.length)})`}</span>
<a href="${remove}" aria-label="${texts.remove}: ${name}">${texts.remove}</a></li>`;
  });
  return html`<section aria-labelledby="factors-title">
<h2 id="factors-title">${texts.twoStep}</h2>
${items.length === 0 ? html`<p>${texts.twoStepText}</p>` : html`<ul class="items">${items}</ul>`}
${(['totp', 'phone'] as const).map(
  (type) =>
    settings[`mfaEnabled:${type}:enroll`] &&
    html`<p><a class="button" href="${visit.path('factor', { type })}">${texts[setups[type].title]}</a></p>`,
)}
${
  factors.length > 0 &&
  settings['mfaEnabled:recovery_code:enroll'] &&
  html`<p><a class="button" href="${visit.path('recovery-codes')}">${codes === undefined ? texts.createRecoveryCodes : texts.replaceRecoveryCodes}</a></p>`
}
</section>`;
}

/** Identities can be changed only with manual linking. */
async function identitySection(visit: Visit, user: User): Promise<Html> {
  const { texts } = visit;
  const { manualLinkingEnabled } = visit.context.settings;
  const items = user.identities.map(({ id, provider, email }) => {
    const name =
      provider === 'email' ? texts.email : provider === 'phone' ? texts.phone : providerLabel(provider);
    const content = html`<input type="hidden" name="identity_id" value="${id}">
<button class="link" aria-label="${texts.disconnect}: ${name}">${texts.disconnect}</button>`;
    const canUnlink = manualLinkingEnabled && user.identities.length > 1;
    return html`<li><span>${name}${email !== '' && html`<br><small>${email}</small>`}</span>
${canUnlink && form(visit, { action: visit.path('identity-remove'), content })}</li>`;
  });
  return html`<section aria-labelledby="identities-title">
<h2 id="identities-title">${texts.waysToSignIn}</h2>
<ul class="items">${items}</ul>
${manualLinkingEnabled && wayList(await providerItems(visit, 'link'))}
</section>`;
}

export const removeIdentityForm = areaForm(
  securityPage,
  'identity-remove',
  async (visit, owner) => {
    const { context, metadata, form: fields } = visit;
    checkMayLink(context, owner);
    await unlinkIdentity(context, owner.user, fields.identity_id ?? '', metadata);
    return 'identity';
  },
  { isSensitive: true },
);
