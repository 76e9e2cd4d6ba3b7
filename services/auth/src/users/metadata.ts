import type { JsonObject } from '@tollgate/kit/json';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { parseAcceptLanguage } from '../i18n/languages.ts';
import type { User } from './user.ts';

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

/**
 * The metadata of a new user, with the language of the request as `locale` if the settings say so,
 * the client sent none, and it fits.
 */
export function withLocale(
  userMetadata: JsonObject,
  { mailerSaveLocaleEnabled }: Pick<Settings, 'mailerSaveLocaleEnabled'>,
  { acceptLanguage = '' }: { readonly acceptLanguage?: string | undefined },
): JsonObject {
  const [locale] = mailerSaveLocaleEnabled ? parseAcceptLanguage(acceptLanguage) : [];
  if (locale === undefined || Object.hasOwn(userMetadata, 'locale')) return userMetadata;
  const changes = { ...userMetadata, locale };
  return metadataSizeProblem('user_metadata', { before: {}, changes }) === undefined ? changes : userMetadata;
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
