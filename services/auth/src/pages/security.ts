import { type Html, html } from '@tollgate/kit/html';
import { isUuid } from '@tollgate/kit/text';
import { errors } from '../errors.ts';
import { checkMayLink, unlinkIdentity } from '../providers/identities.ts';
import { listSessions, revokeSession, signOutCaller } from '../sessions/sessions.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import { setups } from './factors.ts';
import { form } from './forms.ts';
import { providerItems, providerLabel, wayList } from './providers.ts';
import { describeFactor } from './second-factor.ts';
import type { Owner, Visit } from './visit.ts';

/** Second factors on the account page. */
export async function factorSection(visit: Visit, user: User): Promise<Html> {
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

/** Sessions on the account page. */
export async function sessionSection(visit: Visit, { user, session: current }: Owner): Promise<Html> {
  const sessions = await listSessions(visit.context, user.id, visit.metadata);
  const items = sessions.map(
    (session) => html`<li>${sessionItem(visit, session, session.id === current.id)}</li>`,
  );
  const endOthers = form(visit, {
    action: visit.path('session-end'),
    content: html`<button class="secondary">${visit.texts.signOutOthers}</button>`,
  });
  return html`<section aria-labelledby="sessions-title">
<h2 id="sessions-title">${visit.texts.sessions}</h2>
<ul class="items">${items}</ul>
${sessions.length > 1 && endOthers}
</section>`;
}

function sessionItem(
  visit: Visit,
  { id, userAgent, ip, createdAt, refreshedAt }: Session,
  isCurrent: boolean,
) {
  const used = (refreshedAt ?? createdAt).toISOString();
  const { texts } = visit;
  const name = describeBrowser(userAgent) ?? texts.unknownDevice;
  const content = html`<input type="hidden" name="session_id" value="${id}">
<button class="link" aria-label="${texts.signOut}: ${name}">${texts.signOut}</button>`;
  return html`<span>${name}${isCurrent && html` <strong>(${texts.thisSession})</strong>`}<br>
<small>${ip !== '' && `${ip}, `}<time datetime="${used}">${used.slice(0, 16).replace('T', ' ')} UTC</time></small></span>
${!isCurrent && form(visit, { action: visit.path('session-end'), content })}`;
}

const browsers = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari', 'curl'] as const;
const browserNames: Readonly<Partial<Record<(typeof browsers)[number], string>>> = {
  Edg: 'Edge',
  OPR: 'Opera',
};
const systems = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS X', 'CrOS', 'Linux'] as const;

/** Browser and system of a `User-Agent`, or its first word. */
function describeBrowser(userAgent: string): string | undefined {
  const browser = browsers.find((name) => userAgent.includes(`${name}/`));
  const system = systems.find((name) => userAgent.includes(name));
  if (browser === undefined) return userAgent.split(/[/ ]/, 1)[0]?.slice(0, 40) || undefined;
  const name = browserNames[browser] ?? browser;
  return system === undefined ? name : `${name}, ${system.replace('Mac OS X', 'macOS')}`;
}

/** Ends one session, or all others without an id. */
export async function endSession(visit: Visit, owner: Owner): Promise<'session'> {
  const {
    context,
    metadata,
    form: { session_id: sessionId },
  } = visit;
  if (sessionId === undefined) await signOutCaller(context, { ...owner, scope: 'others' }, metadata);
  else if (isUuid(sessionId)) await revokeSession(context, { ...owner, sessionId }, metadata);
  else throw errors.session_not_found({ httpStatus: 404 });
  return 'session';
}

/** Identities on the account page. Only with manual linking they can be changed. */
export async function identitySection(visit: Visit, user: User): Promise<Html> {
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

export async function removeIdentity(visit: Visit, owner: Owner): Promise<'identity'> {
  const {
    context,
    metadata,
    form: { identity_id: id = '' },
  } = visit;
  checkMayLink(context, owner);
  await unlinkIdentity(context, owner.user, id, metadata);
  return 'identity';
}
