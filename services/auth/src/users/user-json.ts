import { errors } from '../errors.ts';
import type { Factor } from '../mfa/factors.ts';
import type { Identity, User } from './user.ts';

/** A value that JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** An object of JSON, such as the metadata of a user. */
export interface JsonObject {
  readonly [key: string]: Json;
}

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

/** The two kinds of metadata of a user. */
export type MetadataKind = 'user_metadata' | 'app_metadata';

/**
 * Most bytes of metadata as JSON. Access tokens carry both, and travel in a header at each request: with these a token has up to
 * 10 KiB, and fits with other headers into the 16 KiB that servers of Node.js take (Envoy takes 60 KiB).
 */
export const maxMetadataBytes: Readonly<Record<MetadataKind, number>> = {
  user_metadata: 4096,
  app_metadata: 2048,
};

/** What metadata become by changes, which are merged in at the top level; a `null` takes a key away. */
export function mergeMetadata(before: JsonObject, changes: JsonObject): JsonObject {
  return Object.fromEntries(
    [
      ...Object.entries(before).filter(([key]) => !Object.hasOwn(changes, key)),
      ...Object.entries(changes),
    ].filter(([, value]) => value !== null),
  );
}

/**
 * What is wrong with the size that metadata get by changes; undefined for nothing. Metadata that were too large before, of another
 * server for example, may become smaller step by step.
 */
export function metadataSizeProblem(
  kind: MetadataKind,
  { before, changes }: { readonly before: JsonObject; readonly changes: JsonObject },
): string | undefined {
  const most = maxMetadataBytes[kind];
  const bytes = metadataBytes(mergeMetadata(before, changes));
  if (bytes <= most || bytes <= metadataBytes(before)) return undefined;
  return `${kind} would have ${bytes} bytes as JSON, and may have ${most}: access tokens carry it; keep what is larger elsewhere`;
}

function metadataBytes(metadata: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(metadata));
}

/** What is to be merged into the metadata of a user. */
export interface MetadataChanges {
  readonly userMetadata?: JsonObject | undefined;
  readonly appMetadata?: JsonObject | undefined;
}

/** The metadata of somebody who is new. */
const none: Pick<User, 'userMetadata' | 'appMetadata'> = { userMetadata: {}, appMetadata: {} };

/** Makes sure that metadata do not become larger than access tokens can carry. @throws AppError `validation_failed`. */
export function checkMetadata(
  { userMetadata = {}, appMetadata = {} }: MetadataChanges,
  before: Pick<User, 'userMetadata' | 'appMetadata'> = none,
): void {
  check('user_metadata', { before: before.userMetadata, changes: userMetadata });
  check('app_metadata', { before: before.appMetadata, changes: appMetadata });
}

function check(kind: MetadataKind, of: { readonly before: JsonObject; readonly changes: JsonObject }): void {
  const message = metadataSizeProblem(kind, of);
  if (message !== undefined) throw errors.validation_failed({ message });
}
