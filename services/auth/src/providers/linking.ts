import { createHmac } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { ProviderConnection } from '../identity-providers/connection.ts';
import { withoutSlash } from '../identity-providers/provider.ts';
import { isEqualSecret } from '../keys/secrets.ts';
import type { User } from '../users/user.ts';
import type { ProvidersContext } from './connections.ts';
import { deriveSecrets, signInLifeMs } from './flow.ts';
import { type StartRequest, takeFlow } from './sign-in.ts';

/** Parameter of `/authorize` with the ticket of a user who links an identity. */
export const ticketParameter = 'link_ticket';

/** Separates the ids of tickets from those of flows. */
const ticketSecret = 'link ticket';

/**
 * A ticket is `<id>.<MAC>`. The MAC is by the secret of the browser that may use it: otherwise an
 * attacker could send a ticket to a victim, whose identity would be linked to the account of the
 * attacker.
 */
function bindTicket(id: string, browserSecret: string): string {
  return `${id}.${createHmac('sha256', browserSecret).update(`link ticket ${id}`).digest('base64url')}`;
}

function ticketId(ticket: string): string {
  return ticket.split('.', 1).join();
}

export function isBoundTo(ticket: string, browserSecret: string): boolean {
  return isEqualSecret(ticket, bindTicket(ticketId(ticket), browserSecret));
}

/**
 * Starts to link an identity. The returned URL is of this server: most callers are scripts, and the
 * cookie of their response is not the one of the browser that goes to the provider.
 */
export async function startLinking(
  { store, random, settings }: ProvidersContext,
  { name }: ProviderConnection,
  {
    redirectTo,
    challenge,
    scopes,
    parameters,
    linkingUserId,
    browserSecret,
  }: StartRequest & { readonly browserSecret: string },
  { nowMs }: RequestMetadata,
): Promise<string> {
  const id = random.uuid();
  const flow = {
    id: deriveSecrets(id, ticketSecret).id,
    provider: name,
    redirectTo,
    challenge,
    inviteToken: '',
    linkingUserId,
    requestToken: { token: '', secret: '' },
    emailOptional: false,
  };
  await store.providers.start(flow, new Date(nowMs));
  const query = new URLSearchParams({ ...parameters, provider: name });
  if (scopes.length > 0) query.set('scopes', scopes.join(' '));
  return authorizeUrl(settings, query, bindTicket(id, browserSecret));
}

function authorizeUrl(settings: Settings, query: URLSearchParams, ticket: string): string {
  query.set(ticketParameter, ticket);
  return `${withoutSlash(settings.apiExternalUrl)}/authorize?${query}`;
}

/** The page on which a browser that has not asked for the ticket confirms the account. */
export function confirmationUrl({ settings }: ProvidersContext, query: URLSearchParams): string {
  return `${withoutSlash(settings.apiExternalUrl)}/pages/link?${query}`;
}

/** The account that a ticket links to, and the URL that continues in this browser. */
export interface PendingLink {
  readonly user: User;
  readonly url: string;
}

/** @throws AppError `bad_oauth_state` for a used or expired ticket */
export async function findPendingLink(
  { store, settings }: ProvidersContext,
  { query, browserSecret }: { readonly query: URLSearchParams; readonly browserSecret: string },
  { nowMs }: RequestMetadata,
): Promise<PendingLink> {
  const id = ticketId(query.get(ticketParameter) ?? '');
  const flow = await store.providers.find(deriveSecrets(id, ticketSecret).id);
  const isPending = flow !== undefined && flow.createdAt.getTime() + signInLifeMs > nowMs;
  const userId = isPending ? flow.linkingUserId : undefined;
  const user = userId === undefined ? undefined : await store.users.findById(userId);
  if (user === undefined) throw errors.bad_oauth_state();
  return { user, url: authorizeUrl(settings, new URLSearchParams(query), bindTicket(id, browserSecret)) };
}

/**
 * Spends a ticket and returns the link that the user has requested.
 *
 * @throws AppError `bad_oauth_state` for a used ticket
 */
export async function redeemTicket(
  context: ProvidersContext,
  { ticket, connection }: { readonly ticket: string; readonly connection: ProviderConnection },
  metadata: RequestMetadata,
): Promise<Pick<StartRequest, 'redirectTo' | 'challenge' | 'linkingUserId' | 'inviteToken'>> {
  const flow = await takeFlow(context, deriveSecrets(ticketId(ticket), ticketSecret).id, metadata);
  if (flow.linkingUserId === undefined || flow.provider !== connection.name) throw errors.bad_oauth_state();
  const { redirectTo, challenge, linkingUserId } = flow;
  return { redirectTo, challenge, linkingUserId, inviteToken: '' };
}
