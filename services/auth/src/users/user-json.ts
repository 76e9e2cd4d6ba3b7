import { errors } from '../errors.ts';
import type { Factor } from '../mfa/factors.ts';
import type { Identity, User } from './user.ts';

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** Absent values are omitted, except email and phone, which are empty. */
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

type MetadataKind = 'user_metadata' | 'app_metadata';

/**
 * Maximum size of metadata as JSON. Access tokens carry both kinds: with these limits a token has
 * at most 10 KiB and fits, with other headers, into the 16 KiB that Node.js servers accept (Envoy:
 * 60 KiB).
 */
export const maxMetadataBytes: Readonly<Record<MetadataKind, number>> = {
  user_metadata: 4096,
  app_metadata: 2048,
};

/** Merges at the top level, as the database does; a `null` removes its key. */
export function mergeMetadata(before: JsonObject, changes: JsonObject): JsonObject {
  return Object.fromEntries(
    [
      ...Object.entries(before).filter(([key]) => !Object.hasOwn(changes, key)),
      ...Object.entries(changes),
    ].filter(([, value]) => value !== null),
  );
}

/**
 * Describes why changed metadata would be too large, or returns undefined. Metadata that already
 * exceed the limit (imported, for example) may shrink in steps.
 */
export function metadataSizeProblem(
  kind: MetadataKind,
  { before, changes }: { readonly before: JsonObject; readonly changes: JsonObject },
): string | undefined {
  const limit = maxMetadataBytes[kind];
  const bytes = metadataBytes(mergeMetadata(before, changes));
  if (bytes <= limit || bytes <= metadataBytes(before)) return undefined;
  return `${kind} would have ${bytes} bytes as JSON, the limit is ${limit}: access tokens carry it, store larger data elsewhere`;
}

function metadataBytes(metadata: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(metadata));
}

const noMetadata: Pick<User, 'userMetadata' | 'appMetadata'> = { userMetadata: {}, appMetadata: {} };

/** @throws AppError `validation_failed` when metadata would outgrow access tokens. */
export function checkMetadata(
  changes: {
    readonly userMetadata?: JsonObject | undefined;
    readonly appMetadata?: JsonObject | undefined;
  },
  before: Pick<User, 'userMetadata' | 'appMetadata'> = noMetadata,
): void {
  const { userMetadata = {}, appMetadata = {} } = changes;
  const message =
    metadataSizeProblem('user_metadata', { before: before.userMetadata, changes: userMetadata }) ??
    metadataSizeProblem('app_metadata', { before: before.appMetadata, changes: appMetadata });
  if (message !== undefined) throw errors.validation_failed({ message });
}
