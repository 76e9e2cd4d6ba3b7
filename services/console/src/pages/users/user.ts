import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import type { Tone } from '../../ui/text.ts';

export type User = AuthSchemas['User'];

/** A link to a user, for those who may follow it. */
export function userLink(visit: Visit, id: string, text: string): Html {
  return visit.can('users') ? html`<a href="/users/${id}">${text}</a>` : html`${text}`;
}

/** Parameters of the paths below a user. */
export interface UserPath {
  readonly user_id: string;
}

/** A user as a row of the list. */
export interface UserRow {
  readonly id: string;
  /** Email address, phone number or id. */
  readonly name: string;
  readonly state: string;
  readonly tone: Tone;
  readonly role: string;
  readonly plan: string | undefined;
  readonly providers: readonly string[];
  readonly lastSignInAt: string | undefined;
  readonly createdAt: string;
}

export function toUserRow(user: User, nowMs: number): UserRow {
  const { plan } = user.app_metadata;
  return {
    id: user.id,
    name: displayName(user),
    ...describeState(user, nowMs),
    role: user.role,
    plan: typeof plan === 'string' ? plan : undefined,
    providers: [...new Set(user.identities.map(({ provider }) => provider))],
    lastSignInAt: user.last_sign_in_at,
    createdAt: user.created_at,
  };
}

/** The user that the path names. @throws ServiceError */
export function readUser(visit: Visit): Promise<User> {
  const path = { user_id: visit.param('id') };
  return visit.services.auth((client) => client.GET('/admin/users/{user_id}', { params: { path } }));
}

export function isBanned({ banned_until: until }: Pick<User, 'banned_until'>, nowMs: number): boolean {
  return until !== undefined && Date.parse(until) > nowMs;
}

/** Whether an identity provider of an organization manages the user, as in GoTrue. */
export function isSsoUser({ identities }: Pick<User, 'identities'>): boolean {
  return identities.some(({ provider }) => provider.startsWith('sso:'));
}

export function displayName({ email, phone, id }: Pick<User, 'email' | 'phone' | 'id'>): string {
  return email || (phone && `+${phone}`) || id;
}

function describeState(user: User, nowMs: number): { readonly state: string; readonly tone: Tone } {
  if (isBanned(user, nowMs)) return { state: 'banned', tone: 'bad' };
  if (user.is_anonymous) return { state: 'anonymous', tone: 'neutral' };
  return user.confirmed_at === undefined
    ? { state: 'not confirmed', tone: 'warn' }
    : { state: 'active', tone: 'neutral' };
}
