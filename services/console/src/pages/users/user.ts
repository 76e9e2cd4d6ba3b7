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

export function displayName({ email, phone, id }: Pick<User, 'email' | 'phone' | 'id'>): string {
  return email || (phone && `+${phone}`) || id;
}

function stateOf(
  { banned_until: bannedUntil, confirmed_at: confirmedAt, is_anonymous: isAnonymous }: User,
  nowMs: number,
): { readonly state: string; readonly tone: Tone } {
  if (bannedUntil !== undefined && Date.parse(bannedUntil) > nowMs) return { state: 'banned', tone: 'bad' };
  if (isAnonymous) return { state: 'anonymous', tone: 'neutral' };
  return confirmedAt === undefined
    ? { state: 'not confirmed', tone: 'warn' }
    : { state: 'active', tone: 'neutral' };
}
