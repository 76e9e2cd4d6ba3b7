import type { JsonObject } from '@tollgate/kit/json';
import { parseDuration } from '@tollgate/kit/time';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { importableForms, isImportableHash } from '../passwords/imported-hashes.ts';
import type { PasswordHasher } from '../passwords/passwords.ts';
import { readEmail, readPhone } from '../users/user.ts';

/** A user as sent by an administrator. Absent values and empty texts are not set. */
export interface AdminUserInput {
  readonly role?: string | undefined;
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  /** Hash of another server. */
  readonly passwordHash?: string | undefined;
  readonly emailConfirm?: boolean | undefined;
  readonly phoneConfirm?: boolean | undefined;
  readonly userMetadata?: JsonObject | undefined;
  readonly appMetadata?: JsonObject | undefined;
  /** A duration in Go's syntax, or `none`. */
  readonly banDuration?: string | undefined;
}

/** Length of the columns. */
const maxNameChars = 255;

/** A normalized email, empty for none. @throws AppError `validation_failed`. */
export function readOptionalEmail(email = ''): string {
  return email === '' ? '' : readEmail(email);
}

/** A normalized phone, empty for none. @throws AppError `validation_failed`. */
export function readOptionalPhone(phone = ''): string {
  return phone === '' ? '' : readPhone(phone);
}

/** End of a ban: `null` lifts it, undefined leaves it. @throws AppError `validation_failed`. */
export function readBan(text: string | undefined, { nowMs }: RequestMetadata): Date | null | undefined {
  if (text === undefined || text === '') return undefined;
  const end = parseBan(text, nowMs);
  if (end === undefined)
    throw errors.validation_failed({
      message: `invalid format for ban duration: ${JSON.stringify(text.slice(0, 64))} must be a duration such as 24h, or none`,
    });
  return end;
}

/** A role or an audience, empty for none. @throws AppError `validation_failed`. */
export function readName(member: 'role' | 'aud', text = ''): string {
  if (text.length > maxNameChars)
    throw errors.validation_failed({ message: `${member} is longer than ${maxNameChars} characters` });
  return text;
}

/**
 * @throws AppError `validation_failed` for both a password and a hash, and for a hash that cannot
 *   be verified.
 */
export function checkSecret({ password = '', passwordHash = '' }: AdminUserInput): void {
  if (password !== '' && passwordHash !== '')
    throw errors.validation_failed({ message: 'Only a password or a password hash should be provided' });
  if (passwordHash !== '' && !isImportableHash(passwordHash))
    throw errors.validation_failed({ message: `password_hash must be a hash of ${importableForms}` });
}

/** Hash of the password, or the imported hash; undefined for neither. */
export async function toPasswordHash(
  { password = '', passwordHash = '' }: AdminUserInput,
  passwords: PasswordHasher,
): Promise<string | undefined> {
  if (password !== '') return passwords.hash(password);
  return passwordHash === '' ? undefined : passwordHash;
}

/** A date this far ahead is still valid in JavaScript and PostgreSQL. */
const maxBanMs = 100 * 366 * 24 * 3_600_000;

/**
 * Converts a ban duration in Go's syntax to the end of the ban. `none` and durations that are not
 * positive lift the ban (`null`). Undefined for an invalid duration.
 */
function parseBan(text: string, nowMs: number): Date | null | undefined {
  if (text === 'none') return null;
  const durationMs = parseDuration(text);
  if (durationMs === undefined) return undefined;
  return durationMs > 0 ? new Date(nowMs + Math.min(durationMs, maxBanMs)) : null;
}
