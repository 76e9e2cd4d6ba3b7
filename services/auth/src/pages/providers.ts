import { type Html, html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';
import { exchangeCode } from '../flows/pkce.ts';
import type { OAuth1Provider } from '../identity-providers/oauth1.ts';
import type { Provider } from '../identity-providers/provider.ts';
import { providers } from '../identity-providers/registry.ts';
import { isEqualSecret } from '../keys/secrets.ts';
import { requiredFreshness } from '../oauth/prompts.ts';
import { openBrowserSecret } from '../providers/flow.ts';
import { checkMayLink } from '../providers/identities.ts';
import { findConnection } from '../providers/routes.ts';
import { startSignIn } from '../providers/sign-in.ts';
import { completeSignIn } from './completion.ts';
import { confirmFirst } from './confirm.ts';
import type { PageDefinition } from './page.ts';
import type { Visit } from './visit.ts';

const builtIn: Readonly<Record<string, Provider | OAuth1Provider>> = providers;

/** Name of a provider for users. */
export function providerLabel(provider: string): string {
  const known = Object.hasOwn(builtIn, provider) ? builtIn[provider] : undefined;
  if (known !== undefined && 'label' in known && known.label !== undefined) return known.label;
  const name = provider.replace(/^custom:/, '');
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** Items of a list. Links rather than forms: `form-action` would have to allow all providers. */
export async function providerItems(visit: Visit, purpose: 'sign-in' | 'link'): Promise<readonly Html[]> {
  const more = purpose === 'link' ? { link: linkToken(visit) } : {};
  const { connect, continueWith } = visit.texts;
  const text = purpose === 'link' ? connect : continueWith;
  const providers = await visit.context.providers.list();
  return providers.map(
    ({ name: provider, label = providerLabel(provider) }) =>
      html`<li><a class="button" href="${visit.path('provider', { provider, ...more })}">${text(label)}</a></li>`,
  );
}

/** Nothing without items. */
export function wayList(items: readonly Html[]): Html | undefined {
  return items.length === 0 ? undefined : html`<ul class="ways">${items}</ul>`;
}

/** Otherwise another site could link an identity of an attacker to the account. */
function linkToken(visit: Visit): string {
  return visit.derive(`link ${visit.owner?.session.id ?? ''}`);
}

/** `/pages/provider`: sends the browser to a provider, which sends it back to `/callback`. */
export const providerPage: PageDefinition = {
  name: 'provider',
  access: 'everyone',
  view: ({ texts }) => ({ title: texts.signIn, content: html`` }),
  show: startAtProvider,
};

async function startAtProvider(visit: Visit): Promise<FastifyReply> {
  const { context, request, reply, query, owner } = visit;
  const connection = await findConnection(context, query.provider ?? '');
  const isLinking = query.link !== undefined;
  if (isLinking) {
    if (owner === undefined) return visit.redirect('sign-in');
    const confirmation = confirmFirst(visit, 'security');
    if (confirmation !== undefined) return confirmation;
    checkMayLink(context, owner);
    if (!isEqualSecret(query.link ?? '', linkToken(visit))) throw errors.form_rejected();
  }
  const { settings } = context;
  const browserSecret = openBrowserSecret(request, reply, { settings, isFormPost: connection.isFormPost });
  const landing = isLinking ? 'security' : 'continue';
  const url = await startSignIn(
    context,
    connection,
    {
      redirectTo: visit.url(landing),
      // The code is only valid in the browser that started the sign-in.
      challenge: visit.challenge(verifierPurpose),
      inviteToken: '',
      scopes: [],
      parameters: {},
      browserSecret,
      linkingUserId: isLinking ? owner?.user.id : undefined,
      freshness: isLinking ? undefined : await readFreshness(visit),
    },
    visit.metadata,
  );
  return reply.header('cache-control', 'no-store').redirect(url, 303);
}

/** A session of the provider must not count as a sign-in that a client has asked for. */
async function readFreshness({ context, destination: { authorizationId } }: Visit) {
  const { settings, store } = context;
  if (!settings.oauthServerEnabled) return undefined;
  return requiredFreshness(
    authorizationId === '' ? undefined : await store.authorizations.find(authorizationId),
  );
}

/** Names the verifier of the code that leads a browser back to `/pages/continue`. */
export const verifierPurpose = 'code verifier';

/** `/pages/continue`: a browser returns from a provider, or by the link of a mail, with a code. */
export const continuePage: PageDefinition = {
  name: 'continue',
  access: 'everyone',
  view: ({ texts }) => ({ title: texts.signIn, content: html`` }),
  async show(visit) {
    const { code: authCode, error_code: error } = visit.query;
    if (authCode === undefined)
      return visit.redirect('sign-in', { error_code: error ?? 'unexpected_failure' });
    const codeVerifier = visit.derive(verifierPurpose);
    const issued = await exchangeCode(visit.context, { authCode, codeVerifier }, visit.metadata);
    return completeSignIn(visit, issued);
  },
};
