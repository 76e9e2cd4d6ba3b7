import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { badge } from '../../ui/text.ts';

export type User = AuthSchemas['User'];

/** A link to a user, for those who may follow it. */
export function userLink(visit: Visit, id: string, text: string): Html {
  return visit.can('users') ? html`<a href="/users/${id}">${text}</a>` : html`${text}`;
}

/** Parameters of the paths below a user. */
export interface UserPath {
  readonly user_id: string;
}

/** The plan of app_metadata, where administrators write anything. */
export function userPlan({ app_metadata: { plan } }: Pick<User, 'app_metadata'>): string | undefined {
  return typeof plan === 'string' ? plan : undefined;
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

export function userState(user: User, nowMs: number): Html {
  if (isBanned(user, nowMs)) return badge('banned', 'bad');
  if (user.is_anonymous) return badge('anonymous');
  return user.confirmed_at === undefined ? badge('not confirmed', 'warn') : badge('active');
}
