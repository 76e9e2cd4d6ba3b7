import type { Factor } from './factor.ts';
import type { Identity } from './identity.ts';
import type { Json, JsonObject } from './json.ts';
import type { User } from './user.ts';

/** A user as callers see it. Keys whose value is absent are left out; email and phone are empty instead. */
export function toUserJson(user: User): JsonObject {
  return {
    id: user.id,
    aud: user.aud,
    role: user.role,
    email: user.email,
    ...time('email_confirmed_at', user.emailConfirmedAt),
    ...time('invited_at', user.invitedAt),
    phone: user.phone,
    ...time('phone_confirmed_at', user.phoneConfirmedAt),
    ...time('confirmation_sent_at', user.confirmationSentAt),
    ...time('confirmed_at', user.confirmedAt),
    ...time('recovery_sent_at', user.recoverySentAt),
    ...(user.newEmail !== '' && { new_email: user.newEmail }),
    ...time('email_change_sent_at', user.emailChangeSentAt),
    ...(user.newPhone !== '' && { new_phone: user.newPhone }),
    ...time('phone_change_sent_at', user.phoneChangeSentAt),
    ...time('reauthentication_sent_at', user.reauthenticationSentAt),
    ...time('last_sign_in_at', user.lastSignInAt),
    app_metadata: user.appMetadata,
    user_metadata: user.userMetadata,
    ...(user.factors.length > 0 && { factors: user.factors.map(toFactorJson) }),
    identities: user.identities.map(toIdentityJson),
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
    ...time('banned_until', user.bannedUntil),
    ...time('deleted_at', user.deletedAt),
    is_anonymous: user.isAnonymous,
  };
}

/** A factor as callers see it. */
export function toFactorJson(factor: Factor): JsonObject {
  return {
    id: factor.id,
    created_at: factor.createdAt.toISOString(),
    updated_at: factor.updatedAt.toISOString(),
    status: factor.status,
    ...(factor.friendlyName !== '' && { friendly_name: factor.friendlyName }),
    factor_type: factor.type,
    ...(factor.phone !== '' && { phone: factor.phone }),
    ...time('last_challenged_at', factor.lastChallengedAt),
  };
}

function toIdentityJson(identity: Identity): JsonObject {
  return {
    identity_id: identity.id,
    id: identity.providerId,
    user_id: identity.userId,
    identity_data: identity.data,
    provider: identity.provider,
    ...time('last_sign_in_at', identity.lastSignInAt),
    created_at: identity.createdAt.toISOString(),
    updated_at: identity.updatedAt.toISOString(),
    ...(identity.email !== '' && { email: identity.email }),
  };
}

function time(key: string, value: Date | undefined): Readonly<Record<string, Json>> {
  return value === undefined ? {} : { [key]: value.toISOString() };
}
