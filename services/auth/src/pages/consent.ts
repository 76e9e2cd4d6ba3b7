import { type Html, html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import type { OAuthPermission } from '../config/oauth-permissions.ts';
import { lookupLanguage } from '../i18n/languages.ts';
import { detailTypes } from '../oauth/authorization-details.ts';
import { type AuthorizationResponse, sendAuthorizationResponse } from '../oauth/authorization-response.ts';
import type { Authorization } from '../oauth/authorization-store.ts';
import {
  approve,
  continueConsent,
  deny,
  findAuthorization,
  openAuthorization,
  refuse,
} from '../oauth/authorizations.ts';
import type { OAuthClient } from '../oauth/client-store.ts';
import { isDeviceRequest } from '../oauth/device-authorization.ts';
import {
  findAuthenticatedAt,
  hasPrompt,
  isAfterRequest,
  isOtherUser,
  mustSignInAgain,
} from '../oauth/prompts.ts';
import { splitScope } from '../oauth/scopes.ts';
import { adminScopeName, isAdminScope } from '../sessions/admin-scopes.ts';
import { needsSecondFactor } from '../sessions/assurance.ts';
import { describeTarget, isKnownApp } from './app-target.ts';
import { form, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import type { PageTexts } from './texts/en.ts';
import type { Owner, Visit } from './visit.ts';

/** Asks whether an OAuth client may have access: the target of `/oauth/authorize`. */
export const consentPage: PageDefinition = {
  name: 'consent',
  access: 'user',
  intercept: checkPrompt,
  show: continueEarlier,
  view: viewConsent,
  async submit(visit) {
    const { context, owner, metadata, destination, form: fields } = visit;
    if (owner === undefined) return visit.redirect('sign-in');
    const { authorization: asked } = await findAuthorization(context, destination.authorizationId);
    if (mustSignInAgain(asked, await readSignIn(visit, owner)))
      return visit.redirect('sign-in', { again: 'true' });
    // Not before: the page offers to use another account.
    const { authorization } = await openAuthorization(context, { owner, id: asked.authorization_id });
    // Anything but a click on the button is a refusal.
    const decide = fields.action === 'approve' ? approve : deny;
    return leave(visit, await decide(context, { authorization, owner }, metadata));
  },
};

/** Signs the user in again where the request asks for it, and asks nothing with `prompt=none`. */
async function checkPrompt(visit: Visit): Promise<void> {
  const { context, owner, destination } = visit;
  const { authorization } = await findAuthorization(context, destination.authorizationId);
  const isSilent = hasPrompt(authorization, 'none');
  const signedIn = owner && (await readSignIn(visit, owner));
  if (owner === undefined || signedIn === undefined || mustSignInAgain(authorization, signedIn)) {
    // Another user has signed in than the client expects.
    const isWrong =
      signedIn !== undefined &&
      isOtherUser(authorization, signedIn) &&
      isAfterRequest(authorization, signedIn);
    if (isSilent || isWrong) await leave(visit, await refuse(context, authorization, 'login_required'));
    else if (owner !== undefined) await visit.redirect('sign-in', { again: 'true' });
    return;
  }
  if (!isSilent) return;
  const error = needsSecondFactor(owner.user, owner.session) ? 'interaction_required' : 'consent_required';
  await leave(visit, (await findEarlier(visit, owner)) ?? (await refuse(context, authorization, error)));
}

async function readSignIn({ context }: Visit, { user, session }: Owner) {
  return { user, authenticatedAt: await findAuthenticatedAt(context, session) };
}

async function continueEarlier(visit: Visit): Promise<FastifyReply | undefined> {
  const response = visit.owner && (await findEarlier(visit, visit.owner));
  return response && leave(visit, response);
}

/**
 * The response if the user has consented before. Any application of a device can pretend to be a
 * public client of it.
 *
 * @see RFC 8252 §8.6 https://www.rfc-editor.org/rfc/rfc8252#section-8.6
 */
async function findEarlier(
  { context, metadata, destination }: Visit,
  owner: Owner,
): Promise<AuthorizationResponse | undefined> {
  const { authorization, client } = await findAuthorization(context, destination.authorizationId);
  const isKnown = client.client_type === 'confidential' || authorization.redirect_uri.startsWith('https:');
  if (!isKnown || wantsPage(authorization)) return undefined;
  return continueConsent(context, { authorization, owner }, metadata);
}

/** The page shows the account, and offers another one. */
function wantsPage(authorization: Authorization): boolean {
  return hasPrompt(authorization, 'consent') || hasPrompt(authorization, 'select_account');
}

function leave({ request, reply, context }: Visit, response: AuthorizationResponse): FastifyReply {
  return sendAuthorizationResponse(response, context.settings, { request, reply });
}

async function viewConsent(visit: Visit, { problem }: Outcome): Promise<View> {
  const { context, owner, texts, destination } = visit;
  const { authorization, client } = await findAuthorization(context, destination.authorizationId);
  const { protocol } = new URL(authorization.redirect_uri);
  const place = describeTarget(authorization.redirect_uri);
  const action = visit.path('consent');
  const logo = ownLogo(client, authorization.redirect_uri);
  const account = owner?.user.email || owner?.user.phone || '';
  return {
    title: texts.consentTitle,
    formTargets: [protocol],
    ...(logo !== undefined && { imageSources: [logo.origin] }),
    content: html`${problemSummary(problem)}
${logo !== undefined && html`<p><img src="${logo.href}" alt="" height="48"></p>`}
<p>${texts.consentText(client.client_name ?? place, account)}</p>
<ul>${splitScope(authorization.scope).map((scope) => html`<li>${describeScope(scope, visit)}</li>`)}
${detailItems(authorization, visit)}</ul>
${authorization.resource !== null && html`<p>${texts.consentResource(authorization.resource)}</p>`}
${client.document_url !== null && html`<p>${texts.consentIdentity(new URL(client.document_url).host)}</p>`}
${
  isDeviceRequest(authorization, context.settings)
    ? html`<p>${texts.deviceConsent}</p>`
    : html`<p class="hint">${texts.consentReturn(place)}</p>
${!isKnownApp(authorization.redirect_uri, context.settings) && html`<p class="hint">${texts.consentDevice}</p>`}`
}
${form(visit, {
  action,
  content: html`<button name="action" value="approve">${texts.allow}</button>
<button class="secondary" name="action" value="deny">${texts.deny}</button>`,
})}
${clientLinks(client, texts)}
<p class="after"><a href="${visit.path('accounts')}">${texts.useAnotherAccount}</a></p>`,
  };
}

/**
 * The logo of a client, from its own host only: it must be neither that of another company nor a
 * way to count the visits of users elsewhere.
 */
function ownLogo(client: OAuthClient, redirectUri: string): URL | undefined {
  const logo = URL.parse(client.logo_uri ?? '');
  const own = [redirectUri, client.document_url ?? ''].map((uri) => URL.parse(uri)?.origin);
  return logo?.protocol === 'https:' && own.includes(logo.origin) ? logo : undefined;
}

/** Links of the client. @see OpenID Connect Dynamic Client Registration §2 */
function clientLinks({ metadata }: OAuthClient, texts: PageTexts): Html | undefined {
  const links = [
    [metadata.policy_uri, texts.consentPolicy],
    [metadata.tos_uri, texts.consentTerms],
  ].flatMap(([url, label]) =>
    url === undefined ? [] : html`<li><a href="${url}" rel="noopener noreferrer nofollow">${label}</a></li>`,
  );
  return links.length === 0 ? undefined : html`<ul class="hint">${links}</ul>`;
}

/** The list shows the authorization details. Clients may have chosen parts of the lines. */
function detailItems({ authorization_details: requested }: Authorization, visit: Visit): readonly Html[] {
  const { lines = [] } = requested ?? {};
  const texts = lines.map((line) => (typeof line === 'string' ? line : chooseText(line, visit.language)));
  return [...detailTypes(requested).map((type) => describeDetails(type, visit)), ...texts].map(
    (shown) => html`<li><bdi>${shown}</bdi></li>`,
  );
}

/** The text of a type of authorization details, or its name. */
export function describeDetails(type: string, { language, context: { settings } }: Visit): string {
  return describePermission(settings.oauthServerDetailsTypes, type, language);
}

function describePermission(permissions: readonly OAuthPermission[], name: string, language: string): string {
  const { descriptions = {} } = permissions.find((permission) => permission.name === name) ?? {};
  return chooseText(descriptions, language) || name;
}

/** The text in the language, or in English, or the first one. */
function chooseText(texts: Readonly<Record<string, string>>, language: string): string {
  const tags = Object.keys(texts);
  return texts[lookupLanguage([language, 'en'], tags) ?? tags[0] ?? ''] ?? '';
}

/** The text of a scope, or its name. */
export function describeScope(
  scope: string,
  { texts: { scopes, adminScope }, language, context: { settings } }: Visit,
): string {
  if (isAdminScope(scope)) return adminScope(adminScopeName(scope));
  if (Object.hasOwn(scopes, scope)) return scopes[scope as keyof PageTexts['scopes']]; // a key of it
  return describePermission(settings.oauthServerScopes, scope, language);
}
