import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import type { Tone } from '../../ui/text.ts';

/** A user of the admin API: the members that pages show. */
export interface User {
  readonly id: string;
  readonly email: string;
  readonly phone: string;
  readonly role: string;
  readonly is_anonymous: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly confirmed_at?: string;
  readonly last_sign_in_at?: string;
  readonly banned_until?: string;
  readonly app_metadata: Readonly<Record<string, unknown>>;
  readonly user_metadata: Readonly<Record<string, unknown>>;
  readonly identities: readonly {
    readonly identity_id: string;
    readonly provider: string;
    readonly email?: string;
    readonly last_sign_in_at?: string;
    readonly created_at: string;
  }[];
}

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
    ...stateOf(user, nowMs),
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

function stateOf(user: User, nowMs: number): { readonly state: string; readonly tone: Tone } {
  if (isBanned(user, nowMs)) return { state: 'banned', tone: 'bad' };
  if (user.is_anonymous) return { state: 'anonymous', tone: 'neutral' };
  return user.confirmed_at === undefined
    ? { state: 'not confirmed', tone: 'warn' }
    : { state: 'active', tone: 'neutral' };
}
